from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from rtrain.datasets.base import EpochPlan


def test_digits_are_those_of_scikit_learn(load):
    dataset = load("digits", split={"test": 0})
    bunch = load_digits()
    columns = dataset.splits["train"].columns
    np.testing.assert_allclose(columns["x"][:, 0] * 16, bunch.images)
    np.testing.assert_array_equal(columns["y"], bunch.target)


def test_the_default_is_a_stratified_test_share_of_a_fifth(load):
    info = load("digits").info
    assert info.num_rows == {"train": 1438, "test": 359}
    assert (info.task, info.input_shape, info.num_classes) == ("classification", (1, 8, 8), 10)
    assert info.class_names == tuple("0123456789")
    assert info.memory == "resident"
    assert len(info.mean) == len(info.std) == 1


def test_bytes_and_floats_agree(load):
    floats, integers = (load("digits", dtype=dtype) for dtype in ("float32", "uint8"))
    assert integers.splits["train"].columns["x"].dtype == np.uint8
    assert integers.info.mean[0] == pytest.approx(floats.info.mean[0], abs=1e-3)
    assert integers.info.fingerprint != floats.info.fingerprint


def test_split_and_fingerprint_are_stable(load):
    first, again, other = (load("digits", seed=seed) for seed in (0, 0, 1))
    assert first.info == again.info
    assert first.info.fingerprint != other.info.fingerprint


def test_batches_are_contiguous_float32(load):
    batch = next(load("digits").splits["train"].batches(EpochPlan(rank=0, world_size=1, global_batch_size=32, seed=0)))
    assert batch.x.shape == (32, 1, 8, 8)
    assert batch.x.dtype == np.float32
    assert batch.x.flags.c_contiguous
    assert batch.y.dtype == np.int64
