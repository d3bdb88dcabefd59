"""Rows in memory are held once, whatever number of workers takes them; torch copies small splits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rtrain.datasets.base import EpochPlan, ResidentSplit
from rtrain.testing.small_data import in_memory
from rtrain.trainers.torch.inputs.loader import TensorLoader, fits_on
from rtrain.trainers.torch.ranks import TorchRanks

ROWS, FEATURES = 4_000, 250


def many_rows(dtype: str):
    x = np.ones((ROWS, FEATURES), dtype)
    x.flags.writeable = False  # as in Ray's object store
    y = np.zeros(ROWS, "float32")
    facts = {"dtype": dtype, "mean": (0.5,) * FEATURES, "std": (2.0,) * FEATURES}
    return in_memory({"train": {"x": x, "y": y}}, "regression", **facts)


def ranks():
    return TorchRanks(0, 1, torch.device("cpu"))


def one_pass() -> EpochPlan:
    return EpochPlan(rank=0, world_size=1, global_batch_size=100, seed=0)


@pytest.fixture
def no_copies(monkeypatch):
    """A small split is large, too."""
    monkeypatch.setattr("rtrain.trainers.torch.inputs.loader.STANDARDIZED_ONCE_BYTES", 0)


@pytest.mark.usefixtures("no_copies")
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_torch_takes_batches_of_the_shared_rows(dtype):
    dataset = many_rows(dtype)
    split = dataset.splits["train"]
    assert isinstance(split, ResidentSplit)
    feed = TensorLoader(split, dataset.info, ranks(), channels_last=False)
    assert np.shares_memory(feed._x.numpy(), split.columns["x"])
    batch = next(iter(feed.steps(one_pass())))
    assert batch.x.dtype == torch.float32
    assert (
        float(batch.x.min()) == float(batch.x.max()) == pytest.approx((1 / 255 if dtype == "uint8" else 1) / 2 - 0.25)
    )


def test_lightning_takes_batches_of_the_shared_rows():
    from rtrain.trainers.lightning.inputs import SplitRows

    dataset = many_rows("float32")
    rows = SplitRows(dataset.splits["train"], dataset.info)
    assert np.shares_memory(rows._x.numpy(), dataset.splits["train"].columns["x"])
    x, _ = rows.__getitems__([3, 1])
    assert x.shape == (2, FEATURES)
    assert float(x.min()) == float(x.max()) == 0.25


@pytest.mark.parametrize(("num_bytes", "fits"), [(25, True), (26, False)])
def test_rows_go_to_a_gpu_only_if_they_leave_it_memory(monkeypatch, num_bytes, fits):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1_000))
    assert fits_on(torch.device("cuda:0"), num_bytes) is fits
    assert fits_on(torch.device("cpu"), 10**15)


def test_rows_that_do_not_fit_are_sent_batch_by_batch(monkeypatch):
    monkeypatch.setattr("rtrain.trainers.torch.inputs.loader.fits_on", lambda device, num_bytes: False)
    dataset = many_rows("float32")
    device = torch.device("meta")
    feed = TensorLoader(dataset.splits["train"], dataset.info, TorchRanks(0, 1, device), channels_last=False)
    assert feed._x.device.type == "cpu"
    assert next(iter(feed.steps(one_pass()))).x.device == device
