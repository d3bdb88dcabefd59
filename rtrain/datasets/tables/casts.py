"""Columns taken as another type than their file says: ``dataset.dtypes``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.categories import is_bytes, is_text
from rtrain.datasets.tables.spellings import MISSING
from rtrain.errors import DatasetError

WHOLE = 2.0**53
"""Below it, a float64 that is whole is exactly that number."""
TEXTS = ("string", "category")
"""Types that every value can be taken as."""


def cast_table(table: pa.Table, dtypes: Mapping[str, str], where: str, first_row: int = 0) -> pa.Table:
    """Return the table with these columns as another type; those that it lacks are left alone.

    Raises:
        DatasetError: A value can't be taken as that type; names column and row.
    """
    for name in set(dtypes) & set(table.column_names):
        values = _cast(table[name], name, dtypes[name], where, first_row)
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def without_views(table: pa.Table) -> pa.Table:
    """Return a table whose columns of type string_view are strings: Arrow can't filter the others."""
    for place, column in enumerate(table.schema):
        if pa.types.is_string_view(column.type):
            table = table.set_column(place, column.name, table[column.name].cast(pa.large_string()))
    return table


def cast_schema(schema: pa.Schema, dtypes: Mapping[str, str]) -> pa.Schema:
    """Return the columns and types of a cast table."""
    for index, name in enumerate(schema.names):
        if name in dtypes:
            schema = schema.set(index, schema.field(index).with_type(_arrow_type(dtypes[name])))
    return schema


def _arrow_type(dtype: str) -> pa.DataType:
    return pa.dictionary(pa.int32(), pa.string()) if dtype == "category" else pa.type_for_alias(dtype)


def _cast(values: pa.ChunkedArray, name: str, dtype: str, where: str, first_row: int) -> pa.ChunkedArray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        return _converted(values, dtype)
    except pa.ArrowNotImplementedError as error:
        message = f"{where}: column '{name}' is of type {values.type}, which can't be converted to {dtype}."
        raise DatasetError(message, "Remove it from dataset.dtypes, or use another type.") from error
    except pa.ArrowInvalid as error:
        row = next((row for row in range(len(values)) if not _fits(values.slice(row, 1), dtype)), 0)
        raise DatasetError(
            f"{where}: row {first_row + row + 1} has {name}={values[row].as_py()!r}, which is not {dtype} as set in "
            "dataset.dtypes.",
            f"Correct the value, or {_otherwise(name, dtype)}",
        ) from error


def _otherwise(name: str, dtype: str) -> str:
    if dtype in TEXTS:  # bytes that are not UTF-8, say, which can't be numbers either
        return f"leave out the column: 'dataset.drop=[{name}]'"
    return f"use another type: 'dataset.dtypes={{{name}: category}}'"


def _converted(values: pa.ChunkedArray, dtype: str) -> pa.ChunkedArray:
    if is_bytes(values.type) and dtype in TEXTS:
        values = values.cast(pa.large_binary())
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(values.cast(pa.string()))
        names_values = dtype in TEXTS
        values = pc.if_else(pc.is_in(values, pa.array([""] if names_values else MISSING)), None, values)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    if dtype in TEXTS:
        texts = _texts(values) if pa.types.is_floating(values.type) else values.cast(pa.string())
        return texts.dictionary_encode() if dtype == "category" else texts
    if dtype != "bool":
        values = _numbers(values)
    # Whole numbers beyond a float's digits are rounded, as everywhere; fractions are never cut off.
    return values.cast(_arrow_type(dtype), safe=not dtype.startswith("float"))


def _numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as numbers; dates and times, also as text, as microseconds since 1970."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    if not is_text(values.type):
        return values
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            return values.cast(kind)
    for zone in (None, "UTC"):  # without and with an offset
        with suppress(pa.ArrowInvalid):
            return values.cast(pa.timestamp("us", zone)).cast(pa.int64())
    return values


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floats as text, 3.0 as ``3``."""
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), WHOLE))
    return pc.coalesce(pc.if_else(whole, values, None).cast(pa.int64()).cast(pa.string()), values.cast(pa.string()))


def _fits(values: pa.ChunkedArray, dtype: str) -> bool:
    try:
        _converted(values, dtype)
    except pa.ArrowInvalid:
        return False
    return True
