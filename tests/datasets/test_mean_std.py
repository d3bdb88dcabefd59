from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq
from record_files import example, npy, write_records, write_shard

from rtrain.datasets.mean_std import Moments, given_statistics
from rtrain.datasets.registry import confs
from rtrain.errors import DatasetError


def moments_of(*chunks):
    moments = Moments()
    for chunk in chunks:
        moments.add(chunk)
    return moments


@pytest.mark.parametrize("offset", [0, 1e6])
def test_chunks_give_the_moments_of_the_whole(offset):
    x = np.random.default_rng(0).standard_normal((1000, 3)) * [1, 10, 0.1] + offset
    moments = moments_of(x[:10], x[10:500], x[500:])
    np.testing.assert_allclose(moments.mean, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.std, x.std(axis=0), rtol=1e-7)


def test_bytes_count_as_zero_to_one_per_channel():
    x = np.random.default_rng(0).integers(0, 256, (50, 3, 8, 8), dtype=np.uint8)
    moments = moments_of(x)
    np.testing.assert_allclose(moments.mean, (x / 255).mean(axis=(0, 2, 3)))
    np.testing.assert_allclose(moments.std, (x / 255).std(axis=(0, 2, 3)))


def test_missing_values_are_left_out():
    x = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    assert moments_of(x[:2], x[2:]).mean[0] == 2
    assert np.isnan(moments_of(x).mean[1])


def test_a_constant_has_a_deviation_of_one():
    assert moments_of(np.full((10, 1), 0.1, np.float32)).std == (1.0,)


def test_given_statistics_must_fit_the_channels():
    assert given_statistics(True, 3) is None
    assert given_statistics(False, 3) == ((), ())
    assert given_statistics({"mean": [0.5], "std": [2]}, 1) == ((0.5,), (2.0,))
    with pytest.raises(DatasetError, match="has 1 numbers, but the data has 3"):
        given_statistics({"mean": [0.5], "std": [2]}, 3)


CLOSE = np.float32(1e9) + 64 * np.arange(40, dtype=np.float32)
"""Neighbours in float32."""


def write_close(source, folder):
    """Write numbers that differ little for their size, and return the keys that read them."""
    if source == "numpy":
        np.savez(folder / "x.npz", x=CLOSE[:, None], y=np.arange(40) % 2)
        return {"path": str(folder / "x.npz")}
    if source == "tfrecord":
        records = [example(a=[float(one)], label=[row % 2]) for row, one in enumerate(CLOSE)]
        return {"path": write_records(folder / "x.tfrecord", records)}
    if source == "webdataset":
        rows = [((f"{row}.npy", npy(one[None])), (f"{row}.cls", b"%d" % (row % 2))) for row, one in enumerate(CLOSE)]
        return {"path": write_shard(folder / "x.tar", [one for row in rows for one in row])}
    table = pa.table({"a": CLOSE.astype(np.float64), "y": np.arange(40) % 2})
    if source == "csv":
        csv.write_csv(table, folder / "x.csv")
    else:
        pq.write_table(table, folder / "x.parquet")
    return {"path": str(folder / f"x.{source}"), "label": "y"}


@pytest.mark.parametrize("source", ["numpy", "tfrecord", "webdataset", "csv", "parquet"])
def test_what_float32_loses_is_named_with_a_key_that_the_source_has(load, tmp_path, caplog, source):
    load(source, **write_close(source, tmp_path))
    (line,) = [one.getMessage() for one in caplog.records if "loses digits" in one.getMessage()]
    known = {one.name for one in fields(confs()[source])}
    named = re.findall(r"dataset\.(\w+)=(\w+)", line)
    assert bool(named) == (source in ("csv", "parquet"))
    assert {key for key, _ in named} <= known
    if named:
        caplog.clear()
        load(source, **write_close(source, tmp_path), **dict(named))
        assert not [one for one in caplog.records if "loses digits" in one.getMessage()]
