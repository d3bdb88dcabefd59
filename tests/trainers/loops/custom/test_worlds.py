"""Loops as Ray's trainers of each framework take them, unchanged: alone in this process, and joined on two workers."""

import json
import os

import pytest
import torch

import rtrain
from rtrain.errors import ConfigError
from rtrain.runs.run import Run
from rtrain.trainers.loops.custom.conf import TrainLoopConf
from rtrain.trainers.registry import load_trainer, packages
from rtrain.trainers.tensorflow import world as tensorflow_world

LOOPS = '''
import json
import tempfile
from pathlib import Path

import numpy as np
import ray.train


def rows(rank=0, size=1):
    """Return this worker's rows: two classes, told apart by a line."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5)).astype("float32")
    return x[rank::size], (x[:, 0] + x[:, 1] > 0).astype("int64")[rank::size]


def own_rows():
    context = ray.train.get_context()
    return rows(context.get_world_rank(), context.get_world_size())


def tell(folder, joined, model):
    """Leave what this worker has trained, and how many trained it."""
    rank = ray.train.get_context().get_world_rank()
    found = {"joined": joined, "model": [round(float(one), 3) for one in np.ravel(model)]}
    (Path(folder) / f"worker-{rank}.json").write_text(json.dumps(found))


def xgboost(config):
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    x, y = own_rows()
    data = xgboost.DMatrix(x, y)
    parameters = {"objective": "binary:logistic", "nthread": 1}
    callbacks = [RayTrainReportCallback(frequency=2)]
    booster = xgboost.train(parameters, data, 4, evals=[(data, "train")], callbacks=callbacks)
    tell(config["folder"], xgboost.collective.get_world_size(), booster.predict(xgboost.DMatrix(rows()[0][:20])))


def lightgbm(config):
    import lightgbm
    from ray.train.lightgbm import RayTrainReportCallback, get_network_params

    x, y = own_rows()
    data = lightgbm.Dataset(x, y)
    joined = get_network_params()
    parameters = {"objective": "binary", "tree_learner": "data", "pre_partition": True, "verbose": -1, "num_threads": 1}
    callbacks = [RayTrainReportCallback()]
    booster = lightgbm.train(
        {**parameters, **joined}, data, 4, valid_sets=[data], valid_names=["train"], callbacks=callbacks
    )
    tell(config["folder"], joined.get("num_machines", 1), booster.predict(rows()[0][:20]))


def tensorflow(config):
    import tensorflow
    from ray.train.tensorflow.keras import ReportCheckpointCallback

    keras = tensorflow.keras
    strategy = tensorflow.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(5,))])
        model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True), optimizer="sgd", metrics=["accuracy"])
    data = tensorflow.data.Dataset.from_tensor_slices(rows()).batch(40)
    model.fit(data, epochs=2, callbacks=[ReportCheckpointCallback()], verbose=0)
    assert type(model).__module__.startswith("tf_keras") or strategy.num_replicas_in_sync == 1
    tell(config["folder"], strategy.num_replicas_in_sync, model.get_weights()[0])


def jax(config):
    import jax
    from jax.experimental import multihost_utils

    x, y = own_rows()
    loss = lambda weights: jax.numpy.logaddexp(0, -(2 * y - 1) * (x @ weights)).mean()
    weights = jax.numpy.zeros(5)
    for _ in range(3):
        gradient = jax.grad(loss)(weights)
        if jax.process_count() > 1:
            gradient = multihost_utils.process_allgather(gradient).mean(0)
        weights = weights - gradient
        ray.train.report({"loss": float(loss(weights))})
    tell(config["folder"], jax.process_count(), weights)


def lightning(config):
    import torch
    from lightning.pytorch import Trainer
    from ray.train import lightning as of_ray

    from rtrain.models.lightning import Classifier

    data = torch.utils.data.TensorDataset(*map(torch.tensor, rows()))
    loader = torch.utils.data.DataLoader(data, batch_size=40)
    quiet = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices="auto",
        logger=False,
        strategy=of_ray.RayDDPStrategy(),
        plugins=[of_ray.RayLightningEnvironment()],
        callbacks=[of_ray.RayTrainReportCallback()],
        **quiet,
    )
    trainer = of_ray.prepare_trainer(trainer)
    model = Classifier(5, 2)
    trainer.fit(model, loader, loader)
    tell(config["folder"], trainer.world_size, torch.cat([one.detach().flatten() for one in model.parameters()]))


def transformers(config):
    import torch
    from ray.train.huggingface.transformers import RayTrainReportCallback, prepare_trainer
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=50, **sizes))
    data = [{"input_ids": torch.arange(8) + one, "labels": one % 2} for one in range(32)]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(dir=config["folder"]),
        max_steps=2,
        logging_steps=1,
        save_strategy="steps",
        save_steps=1,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=data)
    trainer.add_callback(RayTrainReportCallback())
    prepare_trainer(trainer).train()
    tell(config["folder"], arguments.world_size, torch.cat([one.detach().flatten() for one in model.parameters()]))


def forgets_the_others(config):
    """Train by LightGBM without its network parameters."""
    import lightgbm

    x, y = own_rows()
    lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, y), 2)
'''
FRAMEWORKS = ("xgboost", "lightgbm", "tensorflow", "jax", "lightning", "transformers")
SAME = ("xgboost", "tensorflow", "jax")
"""Where two workers with half of the rows each train what one does with all of them."""


@pytest.fixture
def train(tmp_path):
    """Train by the loop of a framework; return the run and what each worker has left."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "ray_loops.py").write_text(LOOPS)

    def train(trainer, num_workers, loop=None) -> tuple[Run, list[dict]]:
        config = tmp_path / f"{trainer}.yaml"
        config.write_text(f"trainer: {{type: {trainer}, train_loop: 'ray_loops:{loop or trainer}'}}\n")
        folder = tmp_path / f"left-{num_workers}"
        folder.mkdir()
        words = [f"num_workers={num_workers}", f"run.root_dir={tmp_path / 'runs'}"]
        words += ["run.failure.max_failures=0"] if num_workers else []
        run = rtrain.fit(config, [*words, f"+trainer.train_loop_config.folder={folder}"])
        return run, [json.loads(path.read_text()) for path in sorted(folder.glob("worker-*.json"))]

    return train


def check(trainer: str, run: Run, left: list[dict], size: int) -> None:
    assert run.manifest.status == "succeeded"
    assert [one["joined"] for one in left] == [size] * size
    assert all(one == left[0] for one in left), "each worker has a separate model"
    kept = run.manifest.checkpoints
    assert (len(kept) == 0) == (trainer == "jax"), "only the loop for JAX reports no checkpoint"
    assert run.manifest.metrics


@pytest.mark.parametrize(
    "trainer",  # Lightning's callback has Ray start a cluster
    [pytest.param(one, marks=pytest.mark.slow if one == "lightning" else ()) for one in FRAMEWORKS],
)
def test_a_loop_of_rays_trains_in_this_process(train, trainer):
    check(trainer, *train(trainer, 0), 1)
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    "trainer", ["xgboost", *(pytest.param(one, marks=pytest.mark.slow) for one in FRAMEWORKS if one != "xgboost")]
)
def test_its_workers_train_one_model(train, trainer):
    run, left = train(trainer, 2)
    check(trainer, run, left, 2)
    if trainer in SAME:
        alone = train(trainer, 0)[1][0]
        assert left[0]["model"] == pytest.approx(alone["model"], abs=2e-3)


@pytest.mark.parametrize("trainer", FRAMEWORKS)
def test_importing_a_loop_leaves_alone_what_a_cluster_sets_that_starts_beside_it(monkeypatch, trainer):
    monkeypatch.setenv("RTRAIN_TEST_FOR_RAY", "0")
    with load_trainer(trainer).world().importing():
        monkeypatch.delenv("RTRAIN_TEST_FOR_RAY")
        monkeypatch.setenv("RTRAIN_TEST_OF_RAY", "1")
    assert "RTRAIN_TEST_FOR_RAY" not in os.environ
    assert os.environ["RTRAIN_TEST_OF_RAY"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainer", "why"),
    [("lightgbm", "doesn't connect the workers"), ("xgboost", "connected only for xgboost")],
)
def test_workers_that_train_a_model_each_fail(train, trainer, why):
    with pytest.raises(rtrain.TrainingError, match=why):
        train(trainer, 2, "forgets_the_others")


def test_each_trainer_takes_a_loop_whose_world_it_can_set_up():
    """scikit-learn has no world: Ray has no trainer for it."""
    takes = {name for name in packages() if issubclass(load_trainer(name).Conf, TrainLoopConf)}
    assert takes == set(packages()) - {"sklearn"}
    for name in takes:
        assert load_trainer(name).world().framework in takes


def test_several_workers_of_tensorflow_need_keras_2(train, monkeypatch):
    monkeypatch.setattr(tensorflow_world, "_has_keras_2", lambda: False)
    with pytest.raises(ConfigError, match="pip install tf-keras"):
        train("tensorflow", 2)
    assert tensorflow_world.World().variables()["TF_USE_LEGACY_KERAS"] == "0"
