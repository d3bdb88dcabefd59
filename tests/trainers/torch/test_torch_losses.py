"""Every loss of torch does what a plain script of torch does with it, or is refused before anything starts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_runs import MLP, SGD, fit, make_conf

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError, TrainingError
from rtrain.testing.small_data import few_rows, small_dataset, with_column
from rtrain.testing.workers import make_job
from rtrain.trainers.torch.plugin import Plugin

HERE = __name__
LOSSES = sorted(name for name in dir(nn) if "Loss" in name)
TRAINED = {
    "classification": {"CrossEntropyLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d"},
    "regression": {
        *("BCELoss", "BCEWithLogitsLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss"),
        *("PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss"),
    },
}
REDUCTIONS = ("mean", "none", "sum", "batchmean")
ARGUMENTS = {"AdaptiveLogSoftmaxWithLoss": {"in_features": 3, "n_classes": 3, "cutoffs": [1]}}


class Probabilities(nn.Module):
    """Gives what every loss takes: numbers between 0 and 1. New ones have the same weights."""

    def __init__(self, outputs):
        super().__init__()
        self.linear = nn.Linear(5, outputs)
        with torch.no_grad():
            self.linear.weight.copy_(torch.linspace(-1, 1, 5 * outputs).reshape(outputs, 5))
            self.linear.bias.zero_()

    def forward(self, x):
        return self.linear(x).sigmoid()


class OneNumber(nn.CrossEntropyLoss):
    """Doesn't care about its reduction."""

    def forward(self, output, target):
        return nn.functional.cross_entropy(output, target, self.weight)


@pytest.fixture(autouse=True)
def this_file_may_be_named(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


def weights_of(rows):
    return np.linspace(0.5, 3, rows, dtype="float32")


def rows_of(task, weighted):
    data = few_rows(small_dataset(task, shape=(5,)), 20)
    if task == "regression":  # targets that every loss takes
        for split in data.splits.values():
            split.columns["y"] = (split.columns["y"] > 0).astype("float32")
    return with_column(data, "weight", weights_of) if weighted else data


def conf_of(loss, task, **keys):
    model = {"_target_": f"{HERE}.Probabilities", "outputs": 3 if task == "classification" else 1}
    plain = {**SGD, "momentum": 0.0}
    return make_conf(
        **{"model": model, "loss": loss, "optimizer": plain, "global_batch_size": 20, "max_epochs": 1, **keys}
    )


def check(conf, data):
    Plugin().check(make_job(RtrainConf(trainer=conf), data))


def refused(conf, data):
    try:
        check(conf, data)
    except ConfigError as error:
        return error
    return None


def plain_step(loss, data, weighted):
    """Take the step by hand and return weights, and the loss before it."""
    columns, info = data.splits["train"].columns, data.info
    x = torch.from_numpy((columns["x"] - np.float32(info.mean)) / np.float32(info.std))
    y = torch.from_numpy(columns["y"])
    model = Probabilities(3 if info.task == "classification" else 1)
    output = model(x) if info.task == "classification" else model(x).squeeze(-1)
    if weighted:
        loss.reduction, weight = "none", torch.from_numpy(columns["weight"])
        value = (loss(output, y) * weight).sum() / weight.sum()
    else:
        value = loss(output, y)
    value.backward()
    torch.optim.SGD(model.parameters(), lr=SGD["lr"]).step()
    return model.state_dict(), float(value.detach())


@pytest.mark.filterwarnings("ignore:.*(deprecated|reduction. .mean. divides)")
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("task", TRAINED)
@pytest.mark.parametrize("name", LOSSES)
def test_it_trains_what_a_plain_script_trains_or_is_refused(tmp_path, name, task, weighted):
    data, accepted = rows_of(task, weighted), set()
    for reduction in REDUCTIONS if name not in ARGUMENTS else (None,):
        keys = {**ARGUMENTS.get(name, {}), **({} if reduction is None else {"reduction": reduction})}
        conf = conf_of({"_target_": f"torch.nn.{name}", **keys}, task)
        refusal = refused(conf, data)
        if refusal is not None:
            assert "trainer.loss" in refusal.message
            assert refusal.hint
            continue
        accepted.add(reduction)
        channel, found = fit(tmp_path, conf, dataset=data)
        expected, value = plain_step(getattr(nn, name)(**keys), data, weighted)
        torch.testing.assert_close(found, dict(expected), rtol=1e-5, atol=1e-7)
        assert channel.metrics["train/epoch_loss"] == pytest.approx(value, rel=1e-5)
    assert accepted == ({"mean"} if name in TRAINED[task] else set())


@pytest.mark.parametrize("loss", [f"{HERE}.OneNumber", "torch.nn.CrossEntropyLoss"])
@pytest.mark.parametrize("keys", [{"dataset.weight": True}, {"weight": [1.0, 2.0, 3.0]}], ids=["rows", "classes"])
def test_a_loss_that_ignores_its_reduction_is_told_where_not_all_rows_count_the_same(tmp_path, loss, keys):
    data = rows_of("classification", "dataset.weight" in keys)
    node = {"_target_": loss, **{name: one for name, one in keys.items() if "." not in name}}
    if "OneNumber" not in loss:
        fit(tmp_path, conf_of(node, "classification"), dataset=data)
        return
    with pytest.raises(TrainingError, match=r"trainer\.loss: OneNumber returns one number"):
        fit(tmp_path, conf_of(node, "classification"), dataset=data)


ARRAYS = [
    ("CrossEntropyLoss", "classification", "weight", [1, 2, 3]),
    ("CrossEntropyLoss", "classification", "weight", [0.5, 2.0, 1.0]),
    ("NLLLoss", "classification", "weight", [1, 2, 3]),
    ("MultiMarginLoss", "classification", "weight", [1, 2, 3]),
    ("BCEWithLogitsLoss", "regression", "pos_weight", [7]),
    ("BCEWithLogitsLoss", "regression", "pos_weight", 7),
    ("BCEWithLogitsLoss", "regression", "weight", 0.5),
    ("BCELoss", "regression", "weight", [2]),
]


@pytest.mark.parametrize(("name", "task", "key", "value"), ARRAYS)
def test_arguments_that_are_tensors_are_lists_or_numbers_in_a_config(tmp_path, name, task, key, value):
    data = rows_of(task, False)
    conf = conf_of({"_target_": f"torch.nn.{name}", key: value}, task)
    check(conf, data)
    _, found = fit(tmp_path, conf, dataset=data)
    expected, _ = plain_step(getattr(nn, name)(**{key: torch.tensor(value, dtype=torch.float32)}), data, False)
    torch.testing.assert_close(found, dict(expected), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "task", "key", "value"),
    [
        ("CrossEntropyLoss", "classification", "weight", [1, 2]),
        ("CrossEntropyLoss", "classification", "weight", 2),
        ("MultiMarginLoss", "classification", "weight", [1, 2, 3, 4]),
        ("BCEWithLogitsLoss", "regression", "pos_weight", [1, 2]),
        ("BCELoss", "regression", "weight", [1, 2, 3, 4]),
    ],
)
def test_as_many_as_there_are_classes_or_the_loss_is_refused(name, task, key, value):
    with pytest.raises(ConfigError, match=r"trainer\.loss"):
        check(conf_of({"_target_": f"torch.nn.{name}", key: value}, task), rows_of(task, False))


def test_outputs_and_targets_that_would_broadcast_are_told_with_a_chosen_loss_too(tmp_path):
    data = small_dataset("regression", shape=(5,))
    conf = make_conf(model={**MLP, "num_classes": 2}, loss={"_target_": "torch.nn.MSELoss"})
    with pytest.raises(TrainingError, match="for 2 targets of shape"):
        fit(tmp_path, conf, dataset=replace(data))
