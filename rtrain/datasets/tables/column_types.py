"""What the columns of tables hold: numbers, text or neither, and whether the files of a dataset agree on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.tables.categories import is_bytes, is_declared, is_nested, is_text
from rtrain.datasets.tables.preprocessing import taken_columns
from rtrain.errors import DatasetError


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
                    f"{where}: column '{name}' contains {holds}, but in {there} it contains {other}.",
                    f"Set its type: 'dataset.dtypes={{{name}: {kind}}}', or correct the file.",
                )


def _holds(kind: pa.DataType, is_name: bool) -> str:
    """Return what a column holds, in a word; nothing where all of it is missing."""
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
    """Raise a DatasetError that names all nested, time and binary columns, which no value can make a number."""
    taken = taken_columns(conf.preprocessors)
    wrong: dict[str, pa.DataType] = {}
    for name in features:
        kind = schema.field(name).type
        is_taken = name in taken and pa.types.is_nested(kind)
        if not (is_numeric(kind) or is_text(kind) or is_declared(kind) or is_taken):
            wrong[name] = kind
    if not wrong:
        return
    kinds = ", ".join(f"'{name}' is {_kind_of(kind)}" for name, kind in wrong.items())
    leave = f"drop them: 'dataset.drop=[{','.join([*conf.drop, *wrong])}]'" if len(wrong) < len(features) else ""
    hint = ", or ".join(filter(None, (leave, _as_other_types(wrong)))) or "encode them as numbers in the data."
    raise DatasetError(f"{where}: features must be numbers or text, but {kinds}.", hint[0].upper() + hint[1:])


def _as_other_types(wrong: Mapping[str, pa.DataType]) -> str:
    """Return the override that reads columns as what they can be; nothing where all are nested."""
    readable = {name: kind for name, kind in wrong.items() if not is_nested(kind)}
    types = [f"{name}: {'category' if is_bytes(kind) else 'int64'}" for name, kind in readable.items()]
    return f"convert them: 'dataset.dtypes={{{', '.join(types)}}}'" if types else ""


def _kind_of(kind: pa.DataType) -> str:
    """Return what a column holds, in words, with its type."""
    if is_nested(kind):
        return f"nested ({kind})"
    if pa.types.is_temporal(kind):
        return f"a time ({kind})"
    return f"of type {kind}"


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be a feature."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(check(kind) for check in checks)
