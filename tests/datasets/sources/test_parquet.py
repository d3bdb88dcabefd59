from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rtrain.errors import DatasetError


def write(path, columns):
    parquet.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1, 2], [3], [4]], "nested .list"),
        ([{"b": 1}, {"b": 2}, {"b": 3}], "nested .struct"),
        ([datetime.datetime(2020, 1, 1)] * 3, "a time .timestamp"),
        ([b"a", b"b", b"c"], "of type binary"),
    ],
)
def test_columns_that_are_no_features_are_refused_with_how_to_leave_them_out(load, tmp_path, column, message):
    path = write(tmp_path / "x.parquet", {"a": [1, 2, 3], "b": column, "y": [0, 1, 0]})
    with pytest.raises(DatasetError, match=rf"'b' is {message}[\s\S]*drop=\[b\]"):
        load("parquet", path=path, label="y")
    with pytest.raises(DatasetError, match="the label 'b' is of type"):
        load("parquet", path=path, label="b", features=["a"], task="regression")


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ([datetime.datetime(2020, 1, 1)] * 3, "int64"),
        ([datetime.date(2020, 1, 1)] * 3, "int64"),
        ([b"a"] * 3, "category"),
    ],
)
def test_times_and_bytes_are_features_as_another_type(load, tmp_path, column, dtype):
    path = write(tmp_path / "x.parquet", {"b": column, "y": [0, 1, 0]})
    with pytest.raises(DatasetError, match=rf"dataset\.dtypes={{b: {dtype}}}"):
        load("parquet", path=path, label="y")
    assert load("parquet", path=path, label="y", dtypes={"b": dtype}).info.feature_names == ("b",)


def test_a_table_of_another_format_is_told_with_its_source(load, tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n1,0\n2,1\n")
    with pytest.raises(DatasetError, match=r"x\.csv is a \.csv file[\s\S]*dataset=csv dataset\.path=\S*x\.csv"):
        load("parquet", path=str(tmp_path / "x.csv"), label="y")


def test_dictionaries_decimals_and_bytes_are_understood(load, tmp_path):
    columns = {
        "a": pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.50")] * 5),
        "b": pa.array([3, 4] * 5).dictionary_encode(),
        "y": pa.array([b"no", b"yes"] * 5).dictionary_encode(),
    }
    for memory in ("resident", "stream"):
        dataset = load("parquet", path=write(tmp_path / "x.parquet", columns), label="y", memory=memory)
        assert dataset.info.class_names == ("no", "yes")
        assert dataset.info.mean == pytest.approx((1.875, 3.5), abs=0.5)


def test_a_cut_off_file_is_named(load, tmp_path):
    path = tmp_path / "x.parquet"
    write(path, {"a": [1, 2], "y": [0, 1]})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DatasetError, match=r"x\.parquet: .*Parquet"):
        load("parquet", path=str(path), label="y")


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_broken_files_are_skipped_and_counted(load, tmp_path, memory):
    rows = pa.table({"a": np.random.default_rng(0).random(2_000), "y": np.arange(2_000) % 2})
    for name in ("1", "2", "3", "4"):
        parquet.write_table(rows, tmp_path / f"{name}.parquet", compression="none", use_dictionary=False)
    (tmp_path / "2.parquet").write_bytes(b"no parquet file")
    content = bytearray((tmp_path / "3.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    (tmp_path / "3.parquet").write_bytes(content)
    keys = {"path": str(tmp_path), "label": "y", "memory": memory, "split": {"test": 0}}
    info = load("parquet", **keys, on_error="skip").info
    assert (info.num_skipped, info.num_rows) == (2, {"train": 4_000})
    with pytest.raises(DatasetError, match=r"2\.parquet"):
        load("parquet", **keys)
    with pytest.raises(DatasetError, match=r"no file of the split 'train' can be read\. The last one: .*2\.parquet"):
        load("parquet", **{**keys, "path": str(tmp_path / "2.parquet")}, on_error="skip")
