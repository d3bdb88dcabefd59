"""JSON documents that are one table: a list of objects, or an object of columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rtrain.datasets.conf import is_dropped
from rtrain.datasets.tables.formats.digits import with_digits
from rtrain.errors import DatasetError

COLUMNS = "An object of columns has a list for each of them, of the same length, or an object with the same keys."


def has_columns(found: Any) -> bool:
    """Return whether a value is an object of lists, or of objects whose keys are the rows, as pandas writes it."""
    columns = list(found.values()) if isinstance(found, Mapping) else []
    return any(bool(columns) and all(isinstance(one, kind) for one in columns) for kind in (list, Mapping))


def _columns(found: Mapping[str, Any], file: Path) -> dict[str, list[Any]]:
    """Return the lists of values of what has columns.

    Raises:
        DatasetError: They differ in their rows.
    """
    first, *others = found
    for name in others:
        if isinstance(found[name], Mapping) and found[name].keys() != found[first].keys():
            raise DatasetError(f"{file}: the columns '{first}' and '{name}' have different rows (keys).", COLUMNS)
        if len(found[name]) != len(found[first]):
            counts = f"'{first}' has {len(found[first])} values, and '{name}' has {len(found[name])}"
            raise DatasetError(f"{file}: {counts}.", COLUMNS)
    rows = found[first].keys() if isinstance(found[first], Mapping) else range(len(found[first]))
    return {name: [values[row] for row in rows] for name, values in found.items()}


def read_document(text: bytes, file: Path) -> dict[str, list[Any]]:
    """Return the columns of a document that is a list of objects, or an object of lists of equal length."""
    found = parsed_json(text)
    if isinstance(found, list) and found and all(isinstance(row, Mapping) for row in found):
        names = dict.fromkeys(name for row in found for name in row)
        return {name: [row.get(name) for row in found] for name in names}
    if has_columns(found):
        return _columns(found, file)
    if isinstance(found, Mapping | list) and not found:
        raise DatasetError(f"{file}: there are no rows.", "Check dataset.path.")
    kind = "an object" if isinstance(found, Mapping) else f"a {type(found).__name__}"
    raise DatasetError(
        f"{file}: must be a table, not {kind}.",
        f"Write an object per line, or a list of objects. {COLUMNS}",
    )


def document_table(columns: Mapping[str, list[Any]], exact: Sequence[str], drop: Sequence[str] = ()) -> pa.Table:
    """Return the table; columns to drop are empty where they hold values of several types."""

    def texts(name: str) -> Iterator[str | None]:
        return (None if value is None else str(value) for value in columns[name])

    def array(name: str) -> pa.Array:
        try:
            return _array(columns[name])
        except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            if is_dropped(name, drop):
                return pa.nulls(len(columns[name]))
            why = "a whole number is too large" if isinstance(error, OverflowError) else error
            raise ValueError(f"column '{name}' can't be read: {why}") from error

    table = pa.Table.from_pydict({name: array(name) for name in columns})
    return with_digits(table, exact, texts)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        if {type(value) for value in values} <= {int, float, type(None)}:
            return pa.array([None if value is None else float(str(value)) for value in values])
        raise


def parsed_json(text: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is none, or its parts are nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("lists or objects are nested too deeply") from error
