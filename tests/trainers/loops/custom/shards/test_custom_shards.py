"""Shards without a cluster give what Ray's give."""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.train.v2._internal.execution.train_fn_utils import LocalTrainFnUtils, set_train_fn_utils

from rtrain.datasets.base import ResidentSplit
from rtrain.errors import TrainingError
from rtrain.testing.small_data import small_dataset
from rtrain.trainers.loops.custom.shards.local import LocalShard
from rtrain.trainers.loops.custom.shards.names import OF_VAL, find_split, shared_splits


@pytest.fixture(scope="module")
def dataset():
    return small_dataset(num_rows=(50, 37))


@pytest.fixture
def shard(dataset):
    set_train_fn_utils(LocalTrainFnUtils("test"))
    yield LocalShard(dataset.splits["train"])
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
    (batch,) = LocalShard(split).iter_batches()
    assert sorted(batch) == ["weight", "x", "y"]
    assert [sorted(row) for row in LocalShard(split).iter_rows()] == [["weight", "x", "y"]] * 4


def test_torch_batches_have_the_types_that_are_asked_for(shard):
    batch = next(iter(shard.iter_torch_batches(batch_size=4)))
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float32, torch.int64)
    batch = next(iter(shard.iter_torch_batches(batch_size=4, dtypes=torch.float64)))
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float64, torch.float64)
    batch = next(
        iter(shard.iter_torch_batches(batch_size=4, dtypes={"x": torch.float16, "y": torch.int32}, device="cpu"))
    )
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float16, torch.int32)


def test_types_of_some_columns_are_refused_as_ray_does_on_workers(shard):
    with pytest.raises(KeyError, match="no type for the column 'x': name all columns"):
        next(iter(shard.iter_torch_batches(dtypes={"y": torch.int32})))


@pytest.mark.parametrize("method", ["iter_batches", "iter_torch_batches"])
@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_without_rows_is_refused(shard, method, batch_size):
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        getattr(shard, method)(batch_size=batch_size)


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
def test_what_changes_no_row_is_taken(shard, method):
    assert list(getattr(shard, method)(prefetch_batches=4, local_shuffle_buffer_size=None))


def test_a_name_that_rays_shards_lack_is_refused_without_a_cluster(shard):
    import ray

    with pytest.raises(AttributeError, match="count"):
        shard.count()
    assert not ray.is_initialized()


def test_every_public_name_of_rays_shards_is_there(dataset, monkeypatch):
    from ray.data import DataIterator

    shard = LocalShard(dataset.splits["train"])
    monkeypatch.setitem(vars(shard), "_of_ray", DataIterator)
    for name in (name for name in dir(DataIterator) if not name.startswith("_")):
        assert callable(getattr(shard, name))
    assert not hasattr(shard, "no_such_name")
    assert not hasattr(shard, "_no_such_name")


@pytest.mark.parametrize("name", OF_VAL)
def test_the_names_of_rays_examples_lead_to_the_split_val(dataset, name):
    splits = {**dataset.splits, "val": dataset.splits["test"]}
    assert find_split(replace(dataset, splits=splits), name) == ("val", splits["val"])
    assert shared_splits(replace(dataset, splits=splits), ["train", name]) == ["train", "val"]
    splits[name] = dataset.splits["train"]
    assert find_split(replace(dataset, splits=splits), name) == (name, splits["train"])


def test_a_name_that_does_not_exist_names_those_that_do(dataset):
    with pytest.raises(TrainingError, match="train, test"):
        find_split(dataset, "validation")
    with pytest.raises(TrainingError, match=r"needs the name of a split") as raised:
        find_split(dataset, None)
    assert "get_dataset_shard('train')" in str(raised.value)
    with pytest.raises(TrainingError, match="no dataset"):
        find_split(None, "train")


PARTLY_READ = """
import ray.train

kept = []


def loop():
    batches = ray.train.get_dataset_shard("train").iter_batches(batch_size=10, batch_format="pandas")
    kept.append(iter(batches))
    ray.train.report({"rows": len(next(kept[0]))})
"""
THEN = """
import gc
import sys

import ray

import rtrain

run = rtrain.fit("loop.yaml", ["num_workers=0"])
sys.modules["partly"].kept.clear()
gc.collect()
print(run.metrics["rows"], ray.is_initialized())
"""


@pytest.fixture
def ray_folder():
    """Where Ray keeps its files, with one of a cluster that has ended; a short path, for its sockets."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        left = Path(folder, "ray", "ray_current_cluster")
        left.parent.mkdir()
        left.write_text("127.0.0.1:1")
        yield folder


def test_data_that_is_read_in_part_ends_with_the_loop(tmp_path, ray_folder):
    """Else Ray Data starts Ray again when the iterator goes, or Ray ends the process."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "partly.py").write_text(PARTLY_READ)
    (tmp_path / "loop.yaml").write_text(
        "defaults: [{dataset: digits}]\ntrainer: {type: torch, train_loop: 'partly:loop'}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", THEN],
        cwd=tmp_path,
        env={**os.environ, "RAY_TMPDIR": ray_folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "10.0 False"
