"""Whole numbers that floats would round: columns whose values are compared keep all digits, or are refused."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rtrain.datasets.tables.formats import csv as csv_format
from rtrain.datasets.tables.formats import json as json_format
from rtrain.datasets.tables.formats.csv import CsvFormat
from rtrain.datasets.tables.formats.json import JsonFormat
from rtrain.errors import DatasetError

NUM_ROWS = 120
"""More than there are classes of whole numbers by default."""
SIZES = {"2^53": 2**53, "2^63": 2**63, "below -2^63": -(2**63) - 2**11, "2^70": 2**70}
SOURCES = ("lines", "list", "lists", "csv", "parquet")
MEMORIES = ("resident", "stream")


@pytest.fixture(params=SIZES)
def numbers(request):
    return [SIZES[request.param] + place for place in range(NUM_ROWS)]


@pytest.fixture(params=SOURCES)
def source(request):
    return request.param


@pytest.fixture(params=MEMORIES)
def memory(request):
    return request.param


def write(source, folder, numbers):
    rows = [{"uid": one, "a": float(row), "y": row % 2} for row, one in enumerate(numbers)]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if source == "parquet":
        kind = pa.float64() if any(isinstance(one, float) for one in numbers) else pa.decimal128(38, 0)
        kind = pa.uint64() if min(numbers) >= 0 and max(numbers) < 2**64 else kind
        table = pa.table({**columns, "uid": pa.array(numbers, kind)})
        parquet.write_table(table, folder / "rows.parquet")
        return "parquet", str(folder / "rows.parquet")
    texts = {
        "lines": lambda: "".join(f"{json.dumps(row)}\n" for row in rows),
        "list": lambda: json.dumps(rows),
        "lists": lambda: json.dumps(columns),
        "csv": lambda: "uid,a,y\n" + "".join(f"{row['uid']},{row['a']},{row['y']}\n" for row in rows),
    }
    ending = {"lines": "jsonl", "csv": "csv"}.get(source, "json")
    file = folder / f"rows.{ending}"
    file.write_text(texts[source]())
    return "csv" if source == "csv" else "json", str(file)


@pytest.fixture
def loaded(load, tmp_path, source, memory, numbers):
    name, path = write(source, tmp_path, numbers)
    return partial(load, name, path=path, memory=memory)


def rows_of(dataset):
    return {
        split: sorted(np.concatenate([part["x"][:, 0] for part in rows.own_rows(0, 1)]).tolist())
        for split, rows in dataset.splits.items()
    }


@pytest.mark.parametrize("task", ["auto", "regression"])
def test_numbers_to_predict_are_refused_with_their_row(loaded, task):
    with pytest.raises(DatasetError) as caught:
        loaded(label="uid", drop=["y"], task=task)
    assert "/rows." in caught.value.message
    assert "row 2 " in caught.value.message
    assert "dataset.dtypes={uid: float64}" in caught.value.hint


def test_numbers_to_predict_are_rounded_where_the_config_says_so(loaded):
    assert loaded(label="uid", drop=["y"], dtypes={"uid": "float64"}).info.task == "regression"


def test_each_number_is_a_class(loaded):
    dataset = loaded(label="uid", drop=["y"], dtypes={"uid": "category"})
    assert dataset.info.num_classes == NUM_ROWS


@pytest.mark.parametrize("dtypes", [None, {"uid": "string"}])
def test_rows_are_split_by_all_digits_whatever_the_file(load, loaded, tmp_path, memory, numbers, dtypes):
    keys = {"label": "y", "ids": ["uid"], "split": {"test": 0.3, "by_hash": "uid"}}
    texts = tmp_path / "texts.csv"
    lines = [f"{one},{float(row)},{row % 2}\n" for row, one in enumerate(numbers)]
    texts.write_text("uid,a,y\n" + "".join(lines))
    as_texts = load("csv", path=str(texts), memory=memory, dtypes={"uid": "string"}, **keys)
    assert rows_of(loaded(dtypes=dtypes, **keys)) == rows_of(as_texts)


def test_each_number_is_a_group_of_rows_that_stay_together(loaded):
    dataset = loaded(label="y", ids=["uid"], split={"test": 0.5, "by_group": "uid"})
    assert dataset.info.num_rows["train"] < NUM_ROWS


def test_each_number_is_a_query(load, tmp_path, source, numbers):
    name, path = write(source, tmp_path, numbers)
    dataset = load(name, path=path, memory="resident", label="y", group="uid", task="ranking")
    groups = [part["group"] for split in dataset.splits.values() for part in split.own_rows(0, 1)]
    assert len(np.unique(np.concatenate(groups))) == NUM_ROWS


@pytest.mark.parametrize("keys", [{"categorical": ["uid"]}, {"dtypes": {"uid": "category"}}])
def test_each_number_is_a_category_in_training_and_later(load, open_rows, tmp_path, source, memory, numbers, keys):
    name, path = write(source, tmp_path, numbers)
    dataset = load(name, path=path, memory=memory, label="y", split={"test": 0}, **keys)
    assert sorted(map(int, dataset.info.categories["uid"])) == sorted(numbers)
    new = {"path": path, "label": "y", **keys}
    assert len(np.unique(open_rows(name, dataset, **new).x[:, 0])) == NUM_ROWS


def test_a_number_is_the_same_query_in_every_type(load, tmp_path):
    kinds = {"uint64": pa.uint64(), "decimal": pa.decimal128(38, 0), "float64": pa.float64()}
    for name, kind in kinds.items():
        uid = pa.array([2**63, 2**64 - 2**11, 3], pa.uint64()).cast(kind, safe=False)
        parquet.write_table(pa.table({"uid": uid, "a": [1.0, 2.0, 3.0], "y": [0, 1, 2]}), tmp_path / f"{name}.parquet")
    dataset = load("parquet", path=str(tmp_path), label="y", group="uid", task="ranking", split={"test": 0.4})
    groups = [part["group"] for split in dataset.splits.values() for part in split.own_rows(0, 1)]
    assert len(np.unique(np.concatenate(groups))) == 3


@pytest.mark.parametrize("source", ["lines", "list", "lists", "csv"], indirect=True)
def test_numbers_next_to_fractions_keep_their_digits(load, tmp_path, source, memory):
    name, path = write(source, tmp_path, [0.5, *(2**53 + place for place in range(1, NUM_ROWS))])
    as_texts = {"dtypes": {"uid": "string"}}
    keys = {"label": "y", "ids": ["uid"], "split": {"test": 0.3, "by_hash": "uid"}, "memory": memory}
    assert rows_of(load(name, path=path, **keys)) == rows_of(load(name, path=path, **keys, **as_texts))
    with pytest.raises(DatasetError) as caught:
        load(name, path=path, memory=memory, label="uid", drop=["y"])
    assert "dataset.dtypes={uid: float64}" in caught.value.hint


@pytest.fixture(params=["csv", "lines"])
def long_file(request, tmp_path, monkeypatch):
    """A file of two blocks, whose second one has what the first one doesn't show."""
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(json_format, "BLOCK_BYTES", 1_000)

    def written(*numbers):
        _, path = write(request.param, tmp_path, numbers)
        made = partial(CsvFormat, ",") if request.param == "csv" else JsonFormat
        return made, tmp_path / path

    return written


def test_a_number_that_is_rounded_later_in_a_streamed_file_is_refused_with_its_row(long_file):
    reading, file = long_file(*[0.5] * 150, 2**53, 2**53 + 1)
    exact = reading(exact=["uid"])
    with pytest.raises(DatasetError, match="row 152 has uid=9007199254740993"):
        list(exact.batches(str(file), ["uid"]))
    assert sum(table.num_rows for table in exact.batches(str(file), ["a"])) == 152
    assert sum(table.num_rows for table in reading().batches(str(file), ["uid"])) == 152


def test_floats_of_any_size_stay_floats(long_file):
    numbers = [1e30, 1.5, 2.5e300, float(2**60)] * 40
    reading, file = long_file(*numbers)
    exact = reading(exact=["uid"])
    found = pa.concat_tables(exact.batches(str(file), ["uid"]))
    assert found["uid"].to_pylist() == exact.read(file, ["uid"])["uid"].to_pylist() == numbers


@pytest.mark.parametrize("widened", [[], ["uid"]])
def test_streamed_numbers_are_those_of_the_whole_file(long_file, widened):
    numbers = [2**63 + place for place in range(150)]
    reading, file = long_file(*numbers)
    exact = reading(exact=["uid"])
    found = [one for table in exact.batches(str(file), ["uid"], widened) for one in table["uid"].to_pylist()]
    assert found == exact.read(file, ["uid"])["uid"].to_pylist() == numbers


@pytest.mark.parametrize("number", [2**63 + 1, -(2**63) - 1, {"deep": [2**64 + 1]}, [2**53 + 1, 0.5]])
@pytest.mark.parametrize("source", ["lines", "list"])
def test_whole_numbers_inside_of_a_nested_column_are_never_rounded(tmp_path, source, number):
    rows = [{"meta": {"id": one}, "a": 1} for one in (number, number)]
    file = tmp_path / ("x.jsonl" if source == "lines" else "x.json")
    file.write_text("\n".join(map(json.dumps, rows)) if source == "lines" else json.dumps(rows))
    with pytest.raises(DatasetError, match=r"x\.jsonl?: .*'?meta"):
        list(JsonFormat(exact=["meta"]).batches(str(file), ["a", "meta"]))


def test_nested_numbers_that_floats_hold_are_read(tmp_path):
    rows = [{"meta": {"id": 2**53 + 1, "size": 1e300, "parts": [2**54, 0.5]}} for _ in range(3)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (table,) = JsonFormat(exact=["meta"]).batches(str(tmp_path / "x.jsonl"), ["meta"])
    assert table.to_pylist() == rows
