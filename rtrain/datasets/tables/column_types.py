"""What the columns of tables hold: numbers, text or neither, and whether the files of a dataset agree on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.tables.categories import is_declared, is_text
from rtrain.datasets.tables.preprocessing import taken_columns
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa


def check_alike(schemas: Iterable[tuple[str, pa.Schema]], columns: Sequence[str], conf: ColumnsConf) -> None:
    """Refuse tables that don't agree on what a column holds; whole numbers and fractions go together.

    Args:
        schemas: The columns of each table, with what to call it in messages.
        columns: Those that are used. Features that are asked to be categories may be written in both ways.
        conf: Which ones are the label and the group, and which ones are categories.

    Raises:
        DatasetError: A column is text in one table and numbers in another; names both.
    """
    found: dict[str, tuple[str, str]] = {}
    for where, schema in schemas:
        for name in (name for name in columns if name not in (conf.categorical or ())):
            holds = _holds(schema.field(name).type, name in (conf.label, conf.group))
            other, there = found.setdefault(name, (holds, where)) if holds else (holds, where)
            if holds != other:
                kind = "string" if name in (conf.label, conf.group) else "category"
                raise DatasetError(
                    f"{where}: column '{name}' holds {holds}, but in {there} it holds {other}.",
                    f"Say what it is: 'dataset.dtypes={{{name}: {kind}}}', or correct the file.",
                )


def _holds(kind: pa.DataType, is_name: bool) -> str:
    """Return what a column holds, in a word; nothing where all of it is missing."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return ""
    if is_text(kind) or pa.types.is_binary(kind):
        return "text"
    if is_name and pa.types.is_boolean(kind):
        return "booleans"
    return "numbers" if is_numeric(kind) else str(kind)


def check_types(features: Sequence[str], schema: pa.Schema, where: str, conf: ColumnsConf) -> None:
    """Raise a DatasetError for nested, time and binary columns, which no value can make a number."""
    import pyarrow as pa

    numeric = [name for name in features if is_numeric(schema.field(name).type)]
    taken, known = taken_columns(conf.preprocessors), set(numeric)
    for name in features:
        kind = schema.field(name).type
        if name in known or is_text(kind) or is_declared(kind) or (name in taken and pa.types.is_nested(kind)):
            continue
        is_nested = pa.types.is_nested(getattr(kind, "storage_type", kind))
        nested = "nested, " if is_nested else ""
        hint = numeric_hint(numeric)
        if not nested:
            dtype = "category" if pa.types.is_binary(kind) else "int64"
            hint = f"Take it as another type: 'dataset.dtypes={{{name}: {dtype}}}'. {hint}"
        raise DatasetError(f"{where}: feature '{name}' is not numeric: {nested}of type {kind}.", hint)


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be a feature."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(check(kind) for check in checks)


def numeric_hint(numeric: Sequence[str]) -> str:
    """Return what to do about a feature that is not numeric, with the override to paste."""
    if not numeric:
        return "Features are numbers or booleans; encode them as such."
    return f"Use the numeric ones: 'dataset.features=[{','.join(numeric)}]'"
