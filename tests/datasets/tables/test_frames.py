"""Columns as users' frames have them: each is read, or refused by its name."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from rtrain.datasets.tables.frames import arrays_by_name, table_of_arrays, table_of_pandas, table_of_polars
from rtrain.errors import DatasetError

ROWS = 6
NUMBERS = np.arange(ROWS) / 2
READ = {
    "numbers": NUMBERS,
    "nullable": pd.array([1, 2, None, 4, 5, 6], dtype="Int64"),
    "text": ["a", None, "b", "a", "b", "c"],
    "times": pd.date_range("2020-01-01", periods=ROWS, tz="Europe/Berlin"),
    "decimals": [decimal.Decimal("1.5")] * ROWS,
    "categories": pd.Categorical(list("abcabc")),
    "arrow": pd.array([1, 2, 3, 4, 5, 6], dtype=pd.ArrowDtype(pa.int32())),
}
REFUSED = {
    "mixed": [3, "x"] * 3,
    "mixed categories": pd.Categorical([3, "x"] * 3),
    "truth and numbers": [True, 2] * 3,
    "times and text": [datetime.date(2020, 1, 1), "x"] * 3,
    "complex": NUMBERS + 1j,
    "long": NUMBERS.astype("longdouble"),
    "large": [2**70] * ROWS,
    "objects": [object()] * ROWS,
    "images": pd.Series([np.zeros((2, 2))] * ROWS),
    "intervals as objects": pd.Series(list(pd.cut(NUMBERS, 3)), dtype=object),
}


@pytest.mark.parametrize("name", READ)
def test_a_column_is_what_arrow_itself_makes_of_it(name):
    frame = pd.DataFrame({name: READ[name]}, index=range(5, 5 + ROWS))
    expected = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    assert table_of_pandas(frame, "here").equals(expected)


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_that_arrow_has_no_type_for_is_named(name):
    frame = pd.DataFrame({"good": NUMBERS, name: REFUSED[name]})
    with pytest.raises(DatasetError, match=f"here: column '{name}'") as raised:
        table_of_pandas(frame, "here")
    assert raised.value.hint


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("pattern", ["{}", "*{}"])
def test_a_column_that_is_dropped_may_hold_anything(name, pattern):
    drop = [pattern.format(name)]
    table = table_of_pandas(pd.DataFrame({"good": NUMBERS, name: REFUSED[name]}), "here", drop)
    assert (table["good"].to_pylist(), table[name].null_count) == (NUMBERS.tolist(), ROWS)


@pytest.mark.parametrize(
    "values",
    [np.ones((ROWS, 2)), [[1], [1, 2], [3]] * 2, NUMBERS + 1j, [object()] * ROWS],
    ids=["wide", "ragged", "complex", "objects"],
)
def test_an_array_that_is_dropped_may_hold_anything(values):
    found = {"good": NUMBERS, "other": values}
    table = table_of_arrays(arrays_by_name(found, "here", ["oth*"]), "here", ["oth*"])
    assert (table["good"].to_pylist(), table["other"].null_count) == (NUMBERS.tolist(), ROWS)
    with pytest.raises(DatasetError, match="'other'"):
        table_of_arrays(arrays_by_name(found, "here"), "here")


def test_objects_in_a_frame_of_polars_may_be_dropped():
    frame = pl.DataFrame({"good": [1], "c": pl.Series([object()], dtype=pl.Object)})
    for one in (frame, frame.lazy()):
        assert table_of_polars(one, "here", ["c"]).to_pydict() == {"good": [1], "c": [None]}


def test_types_that_a_column_mixes_are_named():
    with pytest.raises(DatasetError, match="int, str"):
        table_of_pandas(pd.DataFrame({"a": REFUSED["mixed"]}), "here")


@pytest.mark.parametrize("kind", ["categories", "intervals"])
def test_intervals_are_categories_by_their_text(kind):
    cut = pd.cut(pd.Series([0.5, None, 1.5]), [0.0, 1.0, 2.0])
    column = cut if kind == "categories" else pd.arrays.IntervalArray(cut.array)
    table = table_of_pandas(pd.DataFrame({"a": column}), "here")
    assert pa.types.is_dictionary(table.schema.field("a").type)
    assert table["a"].to_pylist() == ["(0.0, 1.0]", None, "(1.0, 2.0]"]


def test_sparse_columns_are_dense():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 3]), "b": pd.arrays.SparseArray([0.5, np.nan, 0])})
    assert table_of_pandas(frame, "here").to_pydict() == {"a": [0, 0, 3], "b": [0.5, None, 0]}


def test_columns_of_one_name_stay_columns():
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", 0])
    assert table_of_pandas(frame, "here").column_names == ["a", "a", "0"]


def test_objects_in_a_frame_of_polars_are_named():
    frame = pl.DataFrame({"good": [1], "c": pl.Series([object()], dtype=pl.Object)})
    for one in (frame, frame.lazy()):
        with pytest.raises(DatasetError, match="here: column 'c'"):
            table_of_polars(one, "here")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (scipy.sparse.csr_matrix(np.eye(3)), r"'c' is sparse \(csr_matrix\)"),
        (scipy.sparse.coo_array(np.eye(3)), r"'c' is sparse \(coo_array\)"),
        ([[1], [1, 2]], "'c' can't be read as an array"),
        (3, "'c' is a int, not an array"),
        (iter([1, 2]), "'c' is a list_iterator, not an array"),
        (np.zeros((2, 3)), r"column 'c' has the shape \(2, 3\)"),
        ([1, 2, 3], "the columns differ in length: {'a': 2, 'c': 3}"),
        (np.array([3, "x"], object), "column 'c' contains values of different types: int, str"),
        (np.array([1j, 2]), "column 'c' contains complex numbers"),
    ],
)
def test_what_can_not_be_a_column_of_arrays_is_named(values, message):
    with pytest.raises(DatasetError, match=message):
        table_of_arrays(arrays_by_name({"a": [1, 2], "c": values}, "here"), "here")
