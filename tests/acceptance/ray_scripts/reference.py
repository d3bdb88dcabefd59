"""Train by a trainer of Ray Train itself, and write what rank 0 has reported.

python reference.py TRAINER MODULE:FUNCTION CONFIG REPORTS DATASETS SPLIT NUM_WORKERS
"""

import importlib
import json
import sys
from functools import partial
from pathlib import Path

import ray.data
import ray.train
from ray.train.lightgbm import LightGBMTrainer
from ray.train.tensorflow import TensorflowTrainer
from ray.train.torch import TorchTrainer
from ray.train.v2.jax import JaxTrainer
from ray.train.xgboost import XGBoostTrainer

from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.registry import load_trainer

TRAINERS = {
    "torch": TorchTrainer,
    "lightning": TorchTrainer,
    "transformers": TorchTrainer,
    "tensorflow": TensorflowTrainer,
    "jax": JaxTrainer,
    "xgboost": XGBoostTrainer,
    "lightgbm": LightGBMTrainer,
}


def loop(trainer, path, reports, config):
    """Call the function, seeded as rtrain does; write the metrics of each report into a line of ``reports``."""
    report = ray.train.report

    def written(metrics, *args, **kwargs):
        if ray.train.get_context().get_world_rank() == 0:
            with Path(reports).open("a") as file:
                file.write(json.dumps({name: float(value) for name, value in metrics.items()}) + "\n")
        report(metrics, *args, **kwargs)

    ray.train.report = written
    module, name = path.split(":")
    function = getattr(importlib.import_module(module), name)
    load_trainer(trainer).world().seed(seed_step(7, ray.train.get_context().get_world_rank(), 0))
    function(config) if config else function()


def rows(function, arguments):
    """Return the rows of a function as a Ray Dataset."""
    module, name = function.split(":")
    columns = getattr(importlib.import_module(module), name)(**arguments)
    return ray.data.range(len(columns["y"])).map_batches(
        lambda batch: {name: values[batch["id"]] for name, values in columns.items()}
    )


if __name__ == "__main__":
    trainer, path, config, reports, datasets, split, num_workers = sys.argv[1:]
    ray.init("local", num_cpus=3, include_dashboard=False)
    TRAINERS[trainer](
        partial(loop, trainer, path, reports),
        train_loop_config=json.loads(config),
        run_config=ray.train.RunConfig(storage_path=str(Path(reports).parent / "results")),
        scaling_config=ray.train.ScalingConfig(num_workers=int(num_workers)),
        datasets={name: rows(one["function"], one.get("arguments", {})) for name, one in json.loads(datasets).items()},
        dataset_config=ray.train.DataConfig(datasets_to_split=json.loads(split)),
    ).fit()
