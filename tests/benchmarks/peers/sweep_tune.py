"""Settings of the digits ResNet as Ray's documentation has it: Tune starts a TorchTrainer for each trial.

Usage: sweep_tune.py EPOCHS SEEDS.
"""

import sys
import tempfile
from pathlib import Path

import ray.train
from ray import tune
from ray.train.torch import TorchTrainer
from ray.tune.integration.ray_train import TuneReportCallback

sys.path.insert(0, str(Path(__file__).parent))
from sweep_model import LRS


def train_loop_per_worker(config):
    sys.path.insert(0, config["peers"])
    from sweep_model import epochs

    for accuracy in epochs(config["lr"], config["seed"], config["num_epochs"]):
        ray.train.report({"accuracy": accuracy})


def train_driver(config):
    trainer = TorchTrainer(
        train_loop_per_worker,
        train_loop_config=config,
        scaling_config=ray.train.ScalingConfig(num_workers=1),
        run_config=ray.train.RunConfig(
            name=f"trial-{tune.get_context().get_trial_id()}",
            storage_path=config["storage"],
            callbacks=[TuneReportCallback()],
        ),
    )
    trainer.fit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as storage:
        ray.init("local", log_to_driver=False)
        varied = {"lr": LRS, "seed": list(range(1, int(sys.argv[2]) + 1))}
        shared = {"peers": str(Path(__file__).parent), "num_epochs": int(sys.argv[1]), "storage": storage}
        tuner = tune.Tuner(
            tune.with_resources(train_driver, {"CPU": 0.01}),
            param_space={**shared, **{name: tune.grid_search(values) for name, values in varied.items()}},
            tune_config=tune.TuneConfig(metric="accuracy", mode="max", max_concurrent_trials=2),
            run_config=tune.RunConfig(storage_path=storage),
        )
        results = tuner.fit()
        assert not results.errors, results.errors
        print(results.get_best_result().metrics["accuracy"])
