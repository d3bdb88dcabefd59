"""Losses that divide by what their rows count: the same gradient for any number of workers and of parts of a step."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_runs import GPT, SGD, assert_same, fit, fit_rank, make_conf, small_dataset, token_dataset, weights

from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.errors import TrainingError
from rtrain.trainers.torch.config import StrategyConf
from rtrain.trainers.torch.losses.of_tasks import counts, is_additive

HERE = __name__
PLAIN = {**SGD, "lr": 0.1, "momentum": 0.0}
CROSS_ENTROPY = {"_target_": "torch.nn.CrossEntropyLoss"}
LOSSES = {
    "class weights": {**CROSS_ENTROPY, "weight": [0.1, 3.0, 20.0]},
    "ignored class": {**CROSS_ENTROPY, "ignore_index": 1},
    "smoothed": {**CROSS_ENTROPY, "label_smoothing": 0.2, "weight": [0.1, 3.0, 20.0], "ignore_index": 0},
    "plain": CROSS_ENTROPY,
    "own": {"_target_": f"{HERE}.Focal"},
}
ONE_OUTPUT = {
    "_target_": "torch.nn.Sequential",
    "_args_": [
        {"_target_": "torch.nn.Flatten"},
        {"_target_": "torch.nn.Linear", "in_features": 64, "out_features": 1},
    ],
}
BINARY = {"_target_": "torch.nn.BCEWithLogitsLoss", "pos_weight": [7.0]}


class Focal(nn.Module):
    """A mean over rows."""

    def forward(self, output, target):
        losses = nn.functional.cross_entropy(output, target, reduction="none")
        return ((1 - (-losses).exp()) ** 2 * losses).mean()


class Balanced(nn.Module):
    """Each class counts as much as another among the rows that it sees at once."""

    def forward(self, output, target):
        losses = nn.functional.cross_entropy(output, target, reduction="none")
        share = torch.bincount(target, minlength=3)[target]
        return (losses / share).sum() / len(target.unique())


@pytest.fixture(autouse=True)
def allowed_as_before(monkeypatch):
    from rtrain.config.targets import allow_list

    monkeypatch.setattr(allow_list, "FRAMEWORKS", allow_list.FRAMEWORKS | {HERE})


def rows_of(weighted):
    """Rows of three classes in an order that gives each part others."""
    data = small_dataset(num_train=90)
    columns = dict(data.splits["train"].columns)
    order = np.argsort(columns["y"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    if weighted:
        columns["weight"] = np.linspace(0.1, 5, 90, dtype="float32")
    info = replace(data.info, columns=(*data.info.columns, *(["weight"] if weighted else [])))
    return Dataset(info, {**data.splits, "train": ResidentSplit(columns)})


def conf_of(loss, **keys):
    return make_conf(**{"loss": loss, "optimizer": PLAIN, "max_epochs": 1, "shuffle": False, **keys})


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("name", LOSSES)
def test_parts_of_a_step_and_two_ranks_train_what_one_step_does(world, tmp_path, name, weighted):
    if weighted and name == "own":
        pytest.skip("a loss without reduction can't weigh rows, and is refused")
    data, loss = rows_of(weighted), LOSSES[name]
    one, expected = fit(tmp_path / "one", conf_of(loss, global_batch_size=45), dataset=data)
    for parts in (3, 5):
        keys = {"global_batch_size": 45 // parts, "accumulate_steps": parts}
        other, found = fit(tmp_path / f"{parts}", conf_of(loss, **keys), dataset=data)
        assert_same(expected, found, rtol=1e-4, atol=1e-6)
        assert other.metrics["train/epoch_loss"] == pytest.approx(one.metrics["train/epoch_loss"], rel=1e-5)
    keys = {"global_batch_size": 15, "accumulate_steps": 3, "eval_batch_size": 5}
    world.run(_fit, str(tmp_path / "two"), conf_of(loss, **keys), dataset=data)
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-4, atol=1e-6)


def _fit(rank, folder, conf, **keys):
    from rtrain.config.targets import allow_list

    allow_list.FRAMEWORKS = allow_list.FRAMEWORKS | {HERE}
    return fit_rank(rank, folder, conf, **keys)


@pytest.mark.parametrize("name", ["class weights", "ignored class", "smoothed"])
def test_the_loss_of_a_split_is_that_of_all_its_rows_together(tmp_path, name):
    data = small_dataset()
    found = [
        fit(tmp_path / f"{size}", conf_of(LOSSES[name], eval_batch_size=size), dataset=data)[0].metrics
        for size in (5, 1000)
    ]
    assert found[0]["test/loss"] == pytest.approx(found[1]["test/loss"], rel=1e-6)


def test_places_that_are_left_out_count_for_nobody(world, tmp_path):
    data = token_dataset(num_train=12)
    y = data.splits["train"].columns["y"].copy()
    y[:4], y[4:8, ::2] = -100, -100
    columns = {**data.splits["train"].columns, "y": y}
    data = Dataset(data.info, {**data.splits, "train": ResidentSplit(columns)})
    keys = {"model": GPT, "loss": CROSS_ENTROPY}
    _, expected = fit(tmp_path / "one", conf_of(**keys, global_batch_size=12), dataset=data)
    _, found = fit(tmp_path / "three", conf_of(**keys, global_batch_size=4, accumulate_steps=3), dataset=data)
    assert_same(expected, found, rtol=1e-4, atol=1e-6)
    world.run(fit_rank, str(tmp_path / "two"), conf_of(**keys, global_batch_size=6, accumulate_steps=2), dataset=data)
    assert_same(expected, weights(tmp_path / "two"), rtol=1e-4, atol=1e-6)
    options = {"strategy": "fsdp", "strategy_options": StrategyConf(consolidate=True)}
    world.run(fit_rank, str(tmp_path / "fsdp"), conf_of(**keys, global_batch_size=12, **options), dataset=data)
    assert_same(expected, weights(tmp_path / "fsdp"), rtol=1e-4, atol=1e-6)


def test_another_loss_that_normalises_by_itself_is_refused_with_several(world, tmp_path):
    loss, data = {"_target_": f"{HERE}.Balanced"}, small_dataset()
    fit(tmp_path / "one", conf_of(loss), dataset=data)
    with pytest.raises(TrainingError) as error:
        fit(tmp_path / "parts", conf_of(loss, accumulate_steps=3), dataset=data)
    assert "trainer.accumulate_steps=1" in error.value.hint
    with pytest.raises(AssertionError, match="TrainingError"):
        world.run(_fit, str(tmp_path / "two"), conf_of(loss), dataset=data)


@pytest.mark.parametrize(("name", "size", "told"), [("Balanced", 5, 1), ("Balanced", 37, 0), ("Focal", 5, 0)])
def test_a_loss_of_an_evaluation_that_depends_on_its_batches_is_told_once(tmp_path, name, size, told):
    conf = conf_of({"_target_": f"{HERE}.{name}"}, eval_batch_size=size, max_epochs=2)
    texts = fit(tmp_path, conf)[0].notices
    assert len(texts) == told
    assert all("trainer.eval_batch_size" in text for text in texts)


@pytest.mark.parametrize(
    "loss",
    [
        nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.PoissonNLLLoss(), nn.SoftMarginLoss(),
        nn.BCEWithLogitsLoss(), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(7.0)),
    ],
    ids=repr,
)  # fmt: skip
def test_torchs_own_losses_of_numbers_are_means_over_rows(loss):
    generator = torch.Generator().manual_seed(0)
    output, target = torch.randn(17, generator=generator), torch.randint(0, 2, (17,), generator=generator).float()
    assert counts(loss, target) is None
    assert is_additive(loss, output, target)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, nn.NLLLoss])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_what_rows_count_is_what_torch_divides_by(loss, smoothing):
    generator = torch.Generator().manual_seed(0)
    output, target = torch.randn(50, 4, generator=generator), torch.randint(0, 4, (50,), generator=generator)
    more = {"label_smoothing": smoothing} if loss is nn.CrossEntropyLoss else {}
    for keys in ({}, {"weight": torch.rand(4)}, {"ignore_index": 2}, {"weight": torch.rand(4), "ignore_index": 0}):
        whole = loss(**keys, **more)(output, target)
        parts = loss(**keys, **more, reduction="none")(output, target)
        torch.testing.assert_close(parts.sum() / counts(loss(**keys), target).sum(), whole)


def test_weights_of_the_positive_class_are_a_list_too(tmp_path):
    data, keys = small_dataset(task="regression", num_train=90), {"model": ONE_OUTPUT}
    _, expected = fit(tmp_path / "one", conf_of(BINARY, global_batch_size=45, **keys), dataset=data)
    keys |= {"global_batch_size": 15, "accumulate_steps": 3}
    assert_same(expected, fit(tmp_path / "parts", conf_of(BINARY, **keys), dataset=data)[1], rtol=1e-4, atol=1e-6)
    assert_differ(expected, fit(tmp_path / "plain", conf_of({**BINARY, "pos_weight": [1.0]}, **keys), dataset=data)[1])


def assert_differ(first, second):
    assert any((first[name] != second[name]).any() for name in first)
