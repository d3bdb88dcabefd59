"""Columns that predictions keep: as the file has them, bytes as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from rtrain.datasets.tables.categories import is_bytes
from rtrain.datasets.tables.spec import TableSpec


def kept_names(names: Sequence[str], spec: TableSpec, ids: Sequence[str]) -> list[str]:
    """Return which of its columns a table keeps next to each prediction: ``ids``, or all but the features."""
    return list(ids) or [name for name in names if name not in spec.inputs]


def bytes_columns(schema: pa.Schema, spec: TableSpec, ids: Sequence[str]) -> list[str]:
    """Return the columns of bytes that the output has; none where all columns are the input of a model."""
    names = kept_names(schema.names, spec, ids) if spec.inputs else []
    return [name for name in names if is_bytes(schema.field(name).type)]


def not_text(tables: Iterable[pa.Table], names: Sequence[str]) -> set[str]:
    """Return which of these columns of bytes are not all UTF-8."""
    found = set[str]()
    for table in tables:
        found |= {name for name in names if name not in found and _text(table[name]) is None}
        if len(found) == len(names):
            break
    return found


def kept_values(
    table: pa.Table, names: Sequence[str], spec: TableSpec, hexadecimal: Collection[str]
) -> dict[str, pa.ChunkedArray]:
    """Return columns as the output has them: bytes are text, or hexadecimal digits where some are not UTF-8."""
    as_bytes = bytes_columns(table.schema, spec, names)
    texts = {name: _hexadecimal(table[name]) if name in hexadecimal else _text(table[name]) for name in as_bytes}
    return {name: texts.get(name, table[name]) for name in names}


def bytes_as_text(values: Any) -> Any:
    """Return a whole column of bytes as text, or as hexadecimal digits where some are not UTF-8; others as they are."""
    if not isinstance(values, pa.ChunkedArray) or not is_bytes(values.type):
        return values
    text = _text(values)
    return _hexadecimal(values) if text is None else text


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return bytes as text; None if they are not UTF-8."""
    try:
        return _plain(values).cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


def _hexadecimal(values: pa.ChunkedArray) -> pa.ChunkedArray:
    texts: list[Any] = [None if one is None else one.hex() for one in values.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    values = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    return values.cast(pa.large_binary())
