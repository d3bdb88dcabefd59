"""Predictions from a checkpoint alone."""

import numpy as np
import pytest
import torch
from torch_runs import MLP, MODELS, RecordingChannel, make_conf, make_worker, small_dataset

import rtrain
from rtrain.errors import CheckpointError, PredictionError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import newest
from rtrain.trainers.torch.loop import training
from rtrain.trainers.torch.predictor import load_predictor
from rtrain.trainers.trained import LoadedCheckpoint

RESNET = {"_target_": f"{MODELS}.ResNet", "in_channels": "auto", "num_classes": "auto", "layers": [1, 1], "width": 8}


def trained(folder, conf, dataset):
    with training(make_worker(folder, conf, dataset=dataset, channel=RecordingChannel())) as loop:
        loop.run()
    return loop, load_predictor(newest(folder, conf, dataset))


@pytest.mark.parametrize("keys", [{}, {"ema_decay": 0.9}, {"model": RESNET}, {"precision": "bf16"}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_predictions_are_those_of_the_trained_model(tmp_path, keys, dtype):
    dataset = small_dataset(dtype=dtype)
    loop, predictor = trained(tmp_path, make_conf(max_epochs=3, **keys), dataset)
    rows = dataset.splits["test"].columns
    found = predictor.predict(rows["x"])
    accuracy = (found.argmax(1) == rows["y"]).mean()
    assert accuracy == pytest.approx(loop.progress.metrics["test/accuracy"])
    assert found.dtype == np.float32
    assert found.sum(1) == pytest.approx(np.ones(len(found)))
    loss = -np.log(found[np.arange(len(found)), rows["y"]]).mean()
    assert loss == pytest.approx(loop.progress.metrics["test/loss"], rel=1e-2 if "precision" in keys else 1e-4)


LAZY = """from torch import nn


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
"""


@pytest.mark.parametrize("words", [[], ["trainer.ema_decay=0.9"]], ids=str)
def test_layers_that_take_their_sizes_from_the_first_rows_predict_and_resume(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lazy_net.py").write_text(LAZY)
    model = ["trainer.model={_target_: lazy_net.Net}", "scheduler=null"]
    usual = ["num_workers=0", "dataset.limit=200", *model, "epochs=1"]
    run = rtrain.fit("resnet", [*usual, *words])
    for _ in range(2):
        metrics = rtrain.evaluate(run.path, split="val", checkpoint="latest")
        assert metrics["accuracy"] == pytest.approx(run.metrics["val/accuracy"])
        run = rtrain.resume(run.path, ["epochs=2"])


def test_a_regression_gives_one_value_per_row(tmp_path):
    dataset = small_dataset(task="regression", shape=(5,))
    conf = make_conf(max_epochs=20, optimizer={"_target_": "torch.optim.Adam", "lr": 0.01})
    loop, predictor = trained(tmp_path, conf, dataset)
    rows = dataset.splits["test"].columns
    found = predictor.predict(rows["x"], batch_size=10)
    assert found.shape == (37,)
    assert np.square(found - rows["y"]).mean() == pytest.approx(loop.progress.metrics["test/mse"], rel=1e-4)
    assert predictor.predict(rows["x"][:0]).shape == (0,)


def test_rows_of_another_shape_are_refused(tmp_path):
    _, predictor = trained(tmp_path, make_conf(), small_dataset())
    with pytest.raises(PredictionError, match="8, 9"):
        predictor.predict(np.zeros((2, 1, 8, 9), "float32"))


def test_a_checkpoint_without_its_weights_is_named(tmp_path):
    checkpoint = LoadedCheckpoint(folder=tmp_path, conf=make_conf(), info=small_dataset().info)
    with pytest.raises(CheckpointError, match="does not contain the weights"):
        load_predictor(checkpoint)


def test_nothing_in_a_checkpoint_runs_code(tmp_path):
    schedule = {"_target_": "torch.optim.lr_scheduler.OneCycleLR", "max_lr": 0.1, "total_steps": "auto"}
    trained(tmp_path, make_conf(model={**MLP, "dropout": 0.1}, scheduler=schedule, ema_decay=0.9), small_dataset())
    torch.load(latest_checkpoint(tmp_path) / "training.pt", weights_only=True)
