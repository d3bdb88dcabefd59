"""Shards without a cluster give what Ray's give, or say by name what they lack."""

import numpy as np
import pytest
import torch
from ray.train.v2._internal.execution.train_fn_utils import LocalTrainFnUtils, set_train_fn_utils

from rtrain.datasets.base import ResidentSplit
from rtrain.errors import TrainingError
from rtrain.testing.small_data import small_dataset
from rtrain.trainers.loops.custom.shards import LACKING, LocalShard, check_name


@pytest.fixture(scope="module")
def dataset():
    return small_dataset(num_rows=(50, 37))


@pytest.fixture
def shard(dataset):
    set_train_fn_utils(LocalTrainFnUtils("test"))
    yield LocalShard("train", dataset.splits["train"])
    set_train_fn_utils(None)


@pytest.mark.parametrize("batch_size", [1, 7, 25, 50, 60, None])
@pytest.mark.parametrize("drop_last", [True, False])
def test_batches_hold_every_row_once_and_in_order(shard, dataset, batch_size, drop_last):
    batches = list(shard.iter_batches(batch_size=batch_size, drop_last=drop_last))
    sizes = [len(batch["y"]) for batch in batches]
    whole = 50 if batch_size is None else batch_size
    rest = 50 % whole
    assert sizes == [whole] * (50 // whole) + ([rest] if rest and not drop_last else [])
    y = np.concatenate([batch["y"] for batch in batches]) if batches else np.empty(0)
    np.testing.assert_array_equal(y, dataset.splits["train"].columns["y"][: sum(sizes)])


def test_every_column_is_there():
    y = np.arange(4)
    split = ResidentSplit({"x": np.ones((4, 2), "float32"), "y": y, "weight": y / 2})
    (batch,) = LocalShard("train", split).iter_batches()
    assert sorted(batch) == ["weight", "x", "y"]
    assert [sorted(row) for row in LocalShard("train", split).iter_rows()] == [["weight", "x", "y"]] * 4


def test_torch_batches_have_the_types_that_are_asked_for(shard):
    batch = next(iter(shard.iter_torch_batches(batch_size=4)))
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float32, torch.int64)
    batch = next(iter(shard.iter_torch_batches(batch_size=4, dtypes=torch.float64)))
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float64, torch.float64)
    batch = next(iter(shard.iter_torch_batches(batch_size=4, dtypes={"y": torch.int32}, device="cpu")))
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float32, torch.int32)


def test_a_batch_may_be_changed_in_place(shard, dataset):
    before = dataset.splits["train"].columns["x"].copy()
    for batch in shard.iter_torch_batches():
        batch["x"].zero_()
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"], before)


def test_collate_fn_makes_the_batches(shard):
    found = list(shard.iter_torch_batches(batch_size=25, collate_fn=lambda batch: batch["y"].sum()))
    assert len(found) == 2
    with pytest.raises(ValueError, match="collate_fn"):
        shard.iter_torch_batches(collate_fn=len, dtypes=torch.float32)


@pytest.mark.parametrize("method", ["iter_batches", "iter_torch_batches"])
@pytest.mark.parametrize(
    "asked", [{"local_shuffle_buffer_size": 10}, {"local_shuffle_seed": 1}, {"batch_format": "pandas"}, {"new": 1}]
)
def test_what_is_not_understood_is_refused_by_name_before_a_row_is_read(shard, method, asked):
    with pytest.raises(TrainingError, match=next(iter(asked))):
        getattr(shard, method)(**asked)


@pytest.mark.parametrize("method", ["iter_batches", "iter_torch_batches"])
def test_what_changes_no_row_is_taken(shard, method):
    assert list(getattr(shard, method)(prefetch_batches=4, local_shuffle_buffer_size=None))


@pytest.mark.parametrize("name", LACKING)
def test_what_rays_shards_have_beyond_is_refused_by_name(shard, name):
    with pytest.raises(TrainingError, match=name):
        getattr(shard, name)


def test_every_public_name_of_rays_shards_is_there_or_refused_by_name(shard):
    from ray.data import DataIterator

    for name in (name for name in dir(DataIterator) if not name.startswith("_") and name != "get_context"):
        assert hasattr(type(shard), name) or name in LACKING
    assert not hasattr(shard, "no_such_name")


def test_a_name_that_does_not_exist_names_those_that_do(dataset):
    with pytest.raises(TrainingError, match="train, test"):
        check_name(dataset, "validation")
    with pytest.raises(TrainingError, match="no dataset"):
        check_name(None, "train")
