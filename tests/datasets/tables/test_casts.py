"""``dataset.dtypes``: columns that are taken as another type than their file says."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from pydantic import TypeAdapter

from rtrain.datasets.registry import confs, load_source
from rtrain.datasets.tables.casts import cast_table
from rtrain.errors import DatasetError


@pytest.fixture(params=["csv", "json", "parquet"])
def source(request):
    return request.param


@pytest.fixture(params=["resident", "stream"])
def memory(request):
    return request.param


def write(source, path, columns):
    file = path.with_suffix(f".{'jsonl' if source == 'json' else source}")
    table = pa.table(columns)
    if source == "csv":
        csv.write_csv(table, file)
    elif source == "json":
        file.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    else:
        parquet.write_table(table, file, row_group_size=2)
    return str(file)


def own_rows(split):
    parts = list(split.own_rows(0, 1))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def predicted(source, encoding, **keys):
    conf = TypeAdapter(confs()[source]).validate_python(keys)
    reader = load_source(source).open_rows(conf, json.loads(json.dumps(encoding)))
    chunks = [chunk for piece in reader.pieces for chunk in reader.read(piece)]
    kept = {name: [one for chunk in chunks for one in chunk.kept[name].to_pylist()] for name in chunks[0].kept}
    return np.concatenate([chunk.x for chunk in chunks]), kept


SHOPS = {
    "id": ["007", "008", "009", "010"],
    "zip": ["01234", "1234", "99999", "01234"],
    "size": ["1.5", "2", " 3 ", "4"],
    "shop": [1.0, 2.0, None, 1.0],
    "y": ["0", "1", "0", "1"],
}
KEYS = {
    "label": "y",
    "ids": ["id"],
    "dtypes": {"zip": "category", "size": "float32", "shop": "category", "id": "string", "y": "int64"},
}


def test_columns_are_cast_before_anything_else(load, tmp_path, source, memory):
    path = write(source, tmp_path / "t", SHOPS)
    dataset = load(source, path=path, memory=memory, split={"test": 0}, **KEYS)
    assert dict(dataset.info.categories) == {"zip": ("01234", "1234", "99999"), "shop": ("1", "2")}
    rows = own_rows(dataset.splits["train"])
    np.testing.assert_array_equal(rows["x"][:, 1], [1.5, 2, 3, 4])
    np.testing.assert_array_equal(rows["x"][:, 2], [0, 1, np.nan, 0])
    x, kept = predicted(source, dataset.encoding, path=path, **KEYS)
    np.testing.assert_array_equal(x, rows["x"])
    assert kept == {"id": SHOPS["id"]}


def test_new_rows_of_another_source_are_cast_as_in_training(load, tmp_path):
    dataset = load("parquet", path=write("parquet", tmp_path / "t", SHOPS), split={"test": 0}, **KEYS)
    new = write("csv", tmp_path / "new", SHOPS)
    x, kept = predicted("csv", dataset.encoding, path=new, label="y", ids=["id"])
    np.testing.assert_array_equal(x, own_rows(dataset.splits["train"])["x"])
    assert kept == {"id": SHOPS["id"]}


def test_categories_of_digits_are_read_as_text_from_new_files(load, tmp_path):
    columns = {"zip": pa.array(SHOPS["zip"]).dictionary_encode(), "y": [0, 1, 0, 1]}
    dataset = load("parquet", path=write("parquet", tmp_path / "t", columns), label="y", split={"test": 0})
    x, _ = predicted("csv", dataset.encoding, path=write("csv", tmp_path / "n", {"zip": SHOPS["zip"]}), label="y")
    np.testing.assert_array_equal(x, own_rows(dataset.splits["train"])["x"])


def test_ids_of_whole_numbers_stay_what_they_are(load, tmp_path, source):
    columns = {"id": [2**60 + 1, 2**60 + 2], "a": [1, 2], "y": [0, 1]}
    path = write(source, tmp_path / "t", columns)
    dataset = load(source, path=path, label="y", ids=["id"], split={"test": 0})
    assert predicted(source, dataset.encoding, path=path, label="y", ids=["id"])[1] == {"id": columns["id"]}


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        (["1", "2", "x3", "4"], "float32", "row 3 has a='x3', which is not float32 as set in dataset.dtypes"),
        ([1.0, 2.0, 2.0, 2.5], "int64", r"row 4 has a=\S*2\.5\S*, which is not int64"),
        (["true", "false", "1", "maybe"], "bool", "row 4 has a='maybe', which is not bool"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_row(load, tmp_path, source, memory, values, dtype, message):
    path = write(source, tmp_path / "t", {"a": values, "y": [0, 1, 0, 1]})
    keys = {"label": "y", "memory": memory, "split": {"test": 0}, "normalize": False}
    with pytest.raises(DatasetError, match=rf"t\.\w+: {message}"):
        own_rows(load(source, path=path, dtypes={"a": dtype}, **keys).splits["train"])


def test_whole_numbers_in_one_file_and_fractions_in_another_are_both_numbers(load, tmp_path, source, memory):
    write(source, tmp_path / "1", {"a": [1, 2], "b": [1.5, 2.5], "y": [1, 2]})
    write(source, tmp_path / "2", {"y": [2.5, 3.5], "b": [3, None], "a": [0.25, 4.0]})
    keys = {"path": str(tmp_path), "label": "y", "memory": memory, "split": {"test": 0}}
    dataset = load(source, **keys, on_missing="keep", normalize=False)
    assert dataset.info.task == "regression"
    rows = own_rows(dataset.splits["train"])
    np.testing.assert_array_equal(rows["x"], [[1, 1.5], [2, 2.5], [0.25, 3], [4, np.nan]])
    np.testing.assert_array_equal(rows["y"], [1, 2, 2.5, 3.5])


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("a", ["x", "z"], [1, 2]), ("a", [1.5, 2], ["x", "z"]), ("y", [1, 0], ["x", "z"]), ("y", ["x", "z"], [1, 0])],
)
def test_text_in_one_file_and_numbers_in_another_name_both(load, tmp_path, source, memory, name, one, other):
    rest = {"a": [1, 2], "y": [0, 1]}
    paths = [write(source, tmp_path / number, {**rest, name: v}) for number, v in (("1", one), ("2", other))]
    keys = {"path": str(tmp_path), "label": "y", "memory": memory, "split": {"test": 0}}
    with pytest.raises(DatasetError, match=rf"{paths[1]}: column '{name}' contains .* in {paths[0]} it contains "):
        load(source, **keys)
    with pytest.raises(DatasetError, match=rf"{paths[1]}: column '{name}' contains .* in {paths[0]} it contains "):
        load(source, **{**keys, "path": {"train": paths[0], "test": paths[1]}, "split": {}})
    info = load(source, **keys, dtypes={name: "category"}).info
    assert len(info.categories.get("a", info.class_names)) == 4


def test_booleans_and_numbers_are_no_labels_together(load, tmp_path, source, memory):
    write(source, tmp_path / "1", {"a": [1, 2], "y": [True, False]})
    write(source, tmp_path / "2", {"a": [1, 2], "y": [1, 2]})
    with pytest.raises(
        DatasetError, match=r"2\.\w+: column 'y' contains numbers, but in .*1\.\w+ it contains booleans"
    ):
        load(source, path=str(tmp_path), label="y", memory=memory)


def test_a_wrong_name_in_dtypes_is_told_with_the_nearest(load, tmp_path, source):
    path = write(source, tmp_path / "t", {"zip": [1, 2], "y": [0, 1]})
    with pytest.raises(
        DatasetError, match=r"dataset\.dtypes names 'zp', which is not a column[\s\S]*did you mean: zip"
    ):
        load(source, path=path, label="y", dtypes={"zp": "category"})


def test_times_can_be_whole_numbers_but_no_truth():
    table = pa.table({"t": [datetime.datetime(1970, 1, 1, 0, 0, 1)], "d": [datetime.date(1970, 1, 2)]})
    table = table.append_column("s", [["1970-01-01 00:00:02"]]).append_column("n", table["t"].cast(pa.timestamp("ns")))
    found = cast_table(table, dict.fromkeys("tsnd", "int64"), "t").to_pylist()
    assert found == [{"t": 1_000_000, "d": 86_400_000_000, "s": 2_000_000, "n": 1_000_000}]
    with pytest.raises(DatasetError, match=r"'t' is of type timestamp.*can't be converted to bool"):
        cast_table(table, {"t": "bool"}, "t")


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1.0, 2.5, float("nan")], "string", ["1", "2.5", None]),
        ([2**24 + 1], "float32", [2.0**24]),
        ([True, False], "float64", [1.0, 0.0]),
        (pa.array([3, 4]).dictionary_encode(), "string", ["3", "4"]),
        ([float("nan"), 3.0], "int32", [None, 3]),
        (["2", ""], "float32", [2.0, None]),
        (["3.0", " 4", None], "int64", [3, 4, None]),
        ([str(2**60 + 1)], "int64", [2**60 + 1]),
    ],
)
def test_values_that_fit_are_converted(values, dtype, expected):
    assert cast_table(pa.table({"a": values}), {"a": dtype}, "t")["a"].to_pylist() == expected


TIMES = {
    "dates": "2020-01-{:02d}",
    "naive": "2020-01-{:02d}T03:04:05",
    "a blank": "2020-01-{:02d} 03:04:05.25",
    "utc": "2020-01-{:02d}T03:04:05Z",
    "offset": "2020-01-{:02d}T03:04:05+02:00",
}


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("times", TIMES)
def test_times_become_the_same_numbers_wherever_they_are_written(
    load, open_rows, tmp_path, source, times, dtype, memory
):
    texts = [TIMES[times].format(day) for day in range(1, 29)]
    columns = {"t": texts, "a": [float(row) for row in range(28)], "y": [row * 2.0 for row in range(28)]}
    files = {one: write(one, tmp_path / one, columns) for one in ("csv", "json")}
    parquet.write_table(csv.read_csv(files["csv"]), tmp_path / "typed.parquet")
    files["parquet"] = str(tmp_path / "typed.parquet")
    keys = {"label": "y", "dtypes": {"t": dtype}, "dtype": "float64", "memory": memory, "split": {"test": 0}}
    found = load(source, path=files[source], **keys)
    moments = [datetime.datetime.fromisoformat(text) for text in texts]
    since = [one.replace(tzinfo=one.tzinfo or datetime.UTC).timestamp() * 1e6 for one in moments]
    (rows,) = found.splits["train"].own_rows(0, 1)
    assert rows["x"][:, 0].tolist() == since
    for other, file in files.items():
        assert open_rows(other, found, path=file, label="y").x[:, 0].tolist() == since, other
