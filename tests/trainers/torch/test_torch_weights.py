"""Rows with weights: a weight of 2 is a row that is there twice."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from epochs_contract import assert_means_by_weight, assert_same_weighing, copied_and_weighted, unequally_weighted
from torch_runs import (
    SGD,
    assert_same,
    fit,
    fit_rank,
    make_conf,
    metrics_of,
    small_dataset,
    token_dataset,
    weights,
)

from rtrain.datasets.base import Dataset, ResidentSplit
from rtrain.errors import ConfigError
from rtrain.testing.small_data import streamed

CLASSES = {"_target_": "torch.nn.CrossEntropyLoss", "weight": [1.0, 5.0, 0.5]}
GPT = {"_target_": "rtrain.models.torch.GPT", "vocab_size": "auto", "block_size": "auto", "width": 16}


def twice_or_weighted(dataset, evaluated):
    """The same rows, those of an odd number counted twice: once by copies, once by weights."""
    copied, weighted = {}, {}
    for name in ("train", evaluated):
        columns = dataset.splits[name].columns
        weight = np.where(np.arange(len(columns["y"])) % 2, 2, 1)
        copied[name] = ResidentSplit({key: np.repeat(values, weight, axis=0) for key, values in columns.items()})
        weighted[name] = ResidentSplit({**columns, "weight": weight.astype("float32")})
    counts = {name: split.num_rows for name, split in copied.items()}
    return (
        Dataset(replace(dataset.info, num_rows=counts), copied),
        Dataset(replace(dataset.info, columns=("weight",)), weighted),
    )


@pytest.mark.parametrize("kind", ["classification", "regression", "language-modeling"])
def test_a_weight_of_two_is_a_row_twice(world, tmp_path, kind):
    if kind == "language-modeling":
        dataset, evaluated, keys = token_dataset(), "val", {"model": GPT}
    else:
        dataset, evaluated, keys = small_dataset(task=kind), "test", {}
    copied, weighted = twice_or_weighted(dataset, evaluated)
    keys |= {"max_steps": 3, "optimizer": {**SGD, "lr": 0.01}}
    # Whole epochs as one step: the batches hold the same rows.
    one, expected = fit(tmp_path / "copied", make_conf(global_batch_size=1000, **keys), dataset=copied)
    conf = make_conf(global_batch_size=400, accumulate_steps=2, **keys)
    two, found = fit(tmp_path / "weighted", conf, dataset=weighted)
    assert_same(expected, found, rtol=1e-4, atol=1e-6)
    for name in ("train/epoch_loss", f"{evaluated}/loss"):
        assert two.metrics[name] == pytest.approx(one.metrics[name], rel=1e-5)
    world.run(fit_rank, str(tmp_path / "ranks"), conf, dataset=weighted)
    assert_same(expected, weights(tmp_path / "ranks"), rtol=1e-4, atol=1e-6)


def test_streamed_rows_have_weights_too(world, tmp_path):
    _, held = twice_or_weighted(small_dataset(), "test")
    pieces = Dataset(held.info, {name: streamed(split.columns) for name, split in held.splits.items()})
    conf = make_conf(global_batch_size=400, max_steps=3)
    one, expected = fit(tmp_path / "held", conf, dataset=held)
    two, found = fit(tmp_path / "streamed", conf, dataset=pieces)
    assert_same(expected, found, rtol=1e-4, atol=1e-6)
    assert two.metrics["test/loss"] == pytest.approx(one.metrics["test/loss"], rel=1e-5)
    world.run(fit_rank, str(tmp_path / "ranks"), conf, dataset=pieces)
    assert_same(expected, weights(tmp_path / "ranks"), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_the_scale_of_weights_is_nothing(tmp_path, kind):
    keys, found = {"max_steps": 3, "optimizer": {**SGD, "lr": 0.01}, "global_batch_size": 1000}, {}
    for name, data in copied_and_weighted(small_dataset(task=kind)).items():
        found[name] = fit(tmp_path / name, make_conf(**keys), dataset=data)[0].metrics
    assert_same_weighing(found, lambda name: {key: one.numpy() for key, one in weights(tmp_path / name).items()})


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        *product(("classification", "regression"), ({}, {"accumulate_steps": 3}, {"precision": "bf16"})),
        ("classification", {"loss": CLASSES}),
    ],
    ids=str,
)
def test_losses_of_several_steps_are_means_by_weight(world, tmp_path, kind, keys):
    data = unequally_weighted(small_dataset(task=kind))
    conf = make_conf(optimizer={**SGD, "lr": 1e-30}, shuffle=False, global_batch_size=16, **keys)
    rel = 1e-2 if "precision" in keys else 1e-5
    assert_means_by_weight(fit(tmp_path / "one", conf, dataset=data, log_every_steps=1)[0], rel)
    for records in world.run(fit_rank, str(tmp_path / "two"), conf, dataset=data, log_every_steps=1):
        found = metrics_of(records)
        assert not found or found["train/epoch_loss"] == pytest.approx(found["test/loss"], rel=rel)


class Plain(torch.nn.Module):
    """A loss that gives one number only."""

    def forward(self, output, target):
        return torch.nn.functional.cross_entropy(output, target)


def test_a_loss_without_row_losses_refuses_weights(tmp_path, monkeypatch):
    from rtrain.trainers.torch import build

    _, weighted = twice_or_weighted(small_dataset(), "test")
    monkeypatch.setattr(build, "usual_loss", lambda task: Plain())
    with pytest.raises(ConfigError, match="Plain has no reduction"):
        fit(tmp_path, make_conf(), dataset=weighted)
