"""Columns of ``dataset.categorical`` mean the same in each format, whatever else is in the file that holds them."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from rtrain.datasets.base import RawChunk
from rtrain.datasets.registry import load_source
from rtrain.datasets.sources.csv import CsvConf
from rtrain.datasets.tables.categories import num_missing
from rtrain.datasets.tables.predict_rows import load_as_trained
from rtrain.datasets.tables.spellings import places_of, typed_names
from rtrain.errors import DatasetError

FORMATS = ("csv", "parquet", "json")
DAYS = [dt.date(2024, 1, day) for day in (1, 2, 3)]
COLUMNS = {
    "booleans": ([True, False, None], ["true", "false", None]),
    "whole numbers": ([1, 20, -3], ["1", "20", "-3"]),
    "whole floats": ([1.0, 20.0, None], ["1", "20", None]),
    "zeros": (["01234", "1234", "90210"], ["01234", "1234", "90210"]),
    "days": ([str(day) for day in DAYS], [str(day) for day in DAYS]),
    "texts": (["red", "NA", None], ["red", "NA", None]),
    "mixed": (["A7", "01", "True"], ["A7", "01", "True"]),
}


def write(source, path, columns):
    """Write columns with the types of the format: JSON has no days, CSV has text alone."""
    file = path.with_suffix(f".{source}")
    if source == "csv":
        csv.write_csv(pa.table(columns), file)
    elif source == "parquet":
        parquet.write_table(pa.table(columns), file)
    else:
        file.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in pa.table(columns).to_pylist()))
    return str(file)


def names_in(chunk: RawChunk, names):
    return [None if np.isnan(code) else names[int(code)] for code in chunk.x[:, 0]]


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_category_is_the_same_in_all_formats(load, open_rows, tmp_path, kind, source):
    values, names = COLUMNS[kind]
    keys = {"label": "y", "categorical": ["a"], "memory": "stream" if source == "csv" else "auto"}
    if (source, kind) == ("json", "days"):  # which Arrow's reader takes for times, and times are no categories
        keys["dtypes"], names = {"a": "string"}, [f"{name} 00:00:00" for name in names]
    file = write(source, tmp_path / "train", {"a": values * 10, "y": [0, 1] * 15})
    dataset = load(source, path=file, split={"test": 0}, normalize=False, **keys)
    known = dataset.info.categories["a"]
    assert set(known) == {name for name in names if name is not None}
    for new in FORMATS:
        for part in (slice(None), slice(1, None), slice(1)):  # some of the values may be of another type than all
            rows = values[part]
            path = write(new, tmp_path / "new", {"a": pa.array(rows), "b": [0] * len(rows)})
            assert names_in(open_rows(new, dataset, path=path, label="y"), known) == names[part]


@pytest.mark.parametrize(
    ("trained", "text", "name"),
    [
        ("True\nFalse\n", "TRUE", "true"),
        ("1.0\n2.0\nNA\n", "1", "1"),
        ("1\n2\n1e+05\n", "100000", "100000"),
        ("1\n2\n", "1.0", "1"),
        ("1\n2\n", "01", None),
        ("01\n1\n", "01", "01"),
        ("01234\n90210\n", "1234", None),
        ("1\n2\nNA\n", "NA", None),
        ("x\ny\nNA\n", "NA", "NA"),
        ("True\nFalse\nmaybe\n", "true", "True"),
        ("+1\n+2\n", "+1", "+1"),
        ("2024-01-01 10:00:00\n2024-01-02 00:00:00\n", "2024-01-02", "2024-01-02 00:00:00"),
    ],
)
def test_a_csv_file_spells_categories_in_its_own_way(load, open_rows, tmp_path, trained, text, name):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    lines = trained.splitlines() * 6
    train.write_text("a,y\n" + "".join(f"{one},{row % 2}\n" for row, one in enumerate(lines)))
    new.write_text(f"a\n{text}\nzebra\n")
    dataset = load("csv", path=str(train), label="y", categorical=["a"], split={"test": 0}, normalize=False)
    found = open_rows("csv", dataset, path=str(new), label="y")
    assert names_in(found, dataset.info.categories["a"]) == [name, None]


def test_numbers_without_zeros_find_the_only_text_that_they_can_be(load, open_rows, tmp_path):
    file = write("csv", tmp_path / "train", {"a": ["01234", "90210", "007", "07"] * 5, "y": [0, 1] * 10})
    dataset = load("csv", path=file, label="y", categorical=["a"], split={"test": 0}, normalize=False)
    found = open_rows("parquet", dataset, path=write("parquet", tmp_path / "n", {"a": [1234, 90210, 7]}), label="y")
    assert names_in(found, dataset.info.categories["a"]) == ["01234", "90210", None]


def test_files_of_one_dataset_may_spell_a_category_differently(load, tmp_path):
    for name, values in {"a": ["1", "2"], "b": ["1.0", ""], "c": ["2", "NA"]}.items():
        rows = "".join(f"{value},{row % 2}\n" for row, value in enumerate(values * 4))
        (tmp_path / f"{name}.csv").write_text(f"a,y\n{rows}")
    dataset = load("csv", path=str(tmp_path), label="y", categorical=["a"], split={"test": 0}, normalize=False)
    assert dataset.info.categories == {"a": ("1", "2")}
    codes = np.concatenate([rows["x"][:, 0] for rows in dataset.splits["train"].own_rows(0, 1)])
    assert [int((codes == code).sum()) for code in (0, 1)] == [8, 8]


@pytest.mark.parametrize(
    ("names", "text", "found"),
    [
        (["1234", "90210"], "01234", "1234"),  # was read as a number
        (["false", "true"], "True", "true"),
        (["01", "A"], "1", None),  # was read as text
        (["1", "2"], "NA", None),
    ],
)
def test_a_checkpoint_of_before_reads_csv_files_as_it_did(load, open_rows, tmp_path, names, text, found):
    file = write("parquet", tmp_path / "train", {"a": names * 10, "y": [0, 1] * 10})
    dataset = load("parquet", path=file, label="y", categorical=["a"], split={"test": 0}, normalize=False)
    del dataset.encoding["texts"]
    (tmp_path / "new.csv").write_text(f"a\n{text}\n{names[1]}\n")
    chunk = open_rows("csv", dataset, path=str(tmp_path / "new.csv"), label="y")
    assert names_in(chunk, dataset.info.categories["a"]) == [found, names[1]]


def test_the_splits_of_a_checkpoint_of_before_are_read_as_they_were(tmp_path):
    rows = "".join(
        f"{zip_code},{row % 2},{row % 3 == 0}\n" for row, zip_code in enumerate(["01234", "90210", "NA"] * 8)
    )
    (tmp_path / "train.csv").write_text(f"a,y,b\n{rows}")
    conf = CsvConf(path=str(tmp_path / "train.csv"), label="y", categorical=["a", "b"])
    before = {"categories": {"a": ["1234", "90210"], "b": ["false", "true"]}, "dtypes": {}}
    dataset = load_as_trained(load_source("csv"), conf, before)
    assert dataset.info.categories == {"a": ("1234", "90210"), "b": ("false", "true")}
    assert dataset.encoding["dtypes"] == {}
    assert load_as_trained(load_source("csv"), conf, {**before, "texts": []}).info.categories["a"][0] == "01234"


def test_texts_that_stand_for_no_value_are_missing_and_not_new():
    column = pa.chunked_array([["1", "NA", None, "x"]])
    assert num_missing(column, ("1", "2")) == 2
    assert num_missing(column, ("1", "red")) == 1


def test_fractions_in_a_csv_file_are_categories_when_they_are_declared_as_text(load, tmp_path):
    file = write("csv", tmp_path / "t", {"a": [1.5, 2.0, 2.5] * 4, "y": [0, 1] * 6})
    keys = {"path": file, "label": "y", "categorical": ["a"], "split": {"test": 0}}
    with pytest.raises(DatasetError, match=r"'a' should be a category[\s\S]*'dataset\.dtypes=\{a: category\}'"):
        load("csv", **keys)
    assert load("csv", **keys, dtypes={"a": "category"}).info.categories == {"a": ("2", "1.5", "2.5")}


def test_what_texts_stand_for():
    assert typed_names(["1", "2.0", "1e3", "NA", ""]) == {"1", "2", "1000"}
    assert typed_names(["True", "FALSE", "null"]) == {"true", "false"}
    for texts in (["01", "1"], ["True", "1"], ["1", "x"], ["1,000"], ["12345678901234567890123x"], ["\u0663"]):
        assert typed_names(texts) is None
    long = "9" * 40
    assert typed_names([long, f"{long}.0"]) == {long}
    assert places_of(["2024-01-01T00:00:00.000Z"], ["2024-01-01"], zeros_count=True) == {"2024-01-01T00:00:00.000Z": 0}
    assert places_of(["1.00"], ["1", "1.0"], zeros_count=True) == {}
