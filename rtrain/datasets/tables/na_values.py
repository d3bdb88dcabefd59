"""Texts and numbers that stand for missing values: ``dataset.na_values``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.categories import is_fraction, is_number, is_text


def without_na_values(table: pa.Table, na_values: Sequence[str]) -> pa.Table:
    """Return the table with nothing in place of these values, in all columns of text and of numbers.

    Numbers are compared by value, -999.0 and -999, and texts without the blanks around them.
    """
    for place, name in enumerate(table.column_names if na_values else ()):
        table = table.set_column(place, name, _without(table.column(place), na_values))
    return table


def _without(values: pa.ChunkedArray, na_values: Sequence[str]) -> pa.ChunkedArray:
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _without(values.cast(kind.value_type), na_values).dictionary_encode()
    if is_text(kind):
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
        return pc.if_else(pc.is_in(texts, pa.array(na_values, pa.string())), None, values)
    if pa.types.is_integer(kind) or is_fraction(kind):
        numbers = pa.array([float(one) for one in na_values if is_number(one)], pa.float64())
        return pc.if_else(pc.is_in(values.cast(pa.float64(), safe=False), numbers), None, values)
    return values
