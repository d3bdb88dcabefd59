"""Rows in memory: those of a small split are standardized once, and are the same as if each batch were."""

import numpy as np
import pytest
import torch

from rtrain.datasets.base import DatasetInfo, EpochPlan, ResidentSplit
from rtrain.trainers.torch.inputs import loader
from rtrain.trainers.torch.inputs.loader import TensorLoader
from rtrain.trainers.torch.ranks import TorchRanks

PLAN = EpochPlan(rank=0, world_size=1, global_batch_size=7, seed=3)


def rows_of(dtype, shape):
    rng = np.random.default_rng(0)
    return (
        rng.integers(0, 200, (40, *shape)).astype(dtype) if dtype != "float64" else 1e6 + rng.normal(size=(40, *shape))
    )


def info_of(x):
    channels = x.shape[1] if x.dtype != np.int64 else 0
    return DatasetInfo(
        name="rows",
        task="classification",
        num_classes=3,
        num_rows={"train": len(x)},
        fingerprint="none",
        memory="resident",
        memory_reason="small",
        input_shape=x.shape[1:],
        dtype=str(x.dtype),
        mean=tuple(float(one) for one in range(channels)),
        std=tuple(2.0 + one for one in range(channels)),
    )


def steps(monkeypatch, x, most, channels_last):
    monkeypatch.setattr(loader, "STANDARDIZED_ONCE_BYTES", most)
    split = ResidentSplit({"x": x, "y": np.arange(len(x)) % 3})
    loaded = TensorLoader(split, info_of(x), TorchRanks(0, 1, torch.device("cpu")), channels_last)
    return [(step.x, step.y) for _ in range(2) for step in loaded.steps(PLAN)]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("uint8", (3, 4, 5)), ("float32", (6,)), ("float64", (6,)), ("int64", (8,)), ("float32", (2, 3, 3))],
)
def test_rows_are_the_same_whether_they_are_standardized_once_or_batch_by_batch(
    monkeypatch, dtype, shape, channels_last
):
    x = rows_of(dtype, shape)
    once, each = (steps(monkeypatch, x, most, channels_last) for most in (len(x) * x[0].size * 4, 0))
    assert len(once) == len(each) == 12
    for (found, y), (expected, expected_y) in zip(once, each, strict=True):
        assert torch.equal(found, expected)
        assert torch.equal(y, expected_y)
        assert found.dtype == expected.dtype == (torch.int64 if dtype == "int64" else torch.float32)
        assert found.stride() == expected.stride()


def test_a_large_split_stays_in_the_memory_that_workers_share(monkeypatch):
    x = rows_of("float32", (6,))
    monkeypatch.setattr(loader, "STANDARDIZED_ONCE_BYTES", x.nbytes - 1)
    split = ResidentSplit({"x": x, "y": np.arange(len(x)) % 3})
    held = TensorLoader(split, info_of(x), TorchRanks(0, 1, torch.device("cpu")), False)._x
    assert held.data_ptr() == split.columns["x"].ctypes.data
