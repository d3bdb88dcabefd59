"""Preprocessors between the columns of a table and the features of a dataset: fitted once, applied to all rows.

``ray.data.preprocessors`` transform data frames without a cluster. Every checkpoint has their state as plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.datasets.tables.categories import is_declared, is_text, names_of
from rtrain.datasets.tables.preprocessor_conf import check_step
from rtrain.datasets.tables.preprocessor_fit import NEEDS_VALUES, as_ray, learned, part_names
from rtrain.errors import DatasetError

NULLS = "contain null values"
"""What Ray's encoders say of missing values."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Fitted preprocessors, as plain data that JSON can hold."""

    inputs: tuple[str, ...]
    """Columns that the features are made of, of the tables to read."""
    kinds: Mapping[str, str]
    """Those that preprocessors take: ``number``, ``text`` or ``list``; the others stay as they are."""
    steps: tuple[Mapping[str, Any], ...]
    """``type``, ``arguments`` and ``statistics`` of each preprocessor, in their order."""
    parts: Mapping[str, tuple[str, ...]]
    """Columns that become vectors, and what the parts of each are called as features."""
    features: tuple[str, ...]
    """Output columns, without those that are not in ``inputs``."""

    def __post_init__(self) -> None:
        """Check the steps, which a checkpoint may hold whoever wrote it.

        Raises:
            ValueError: One is not on the list that a config can name.
        """
        for place, step in enumerate(self.steps):
            check_step(place, str(step["type"]), step["arguments"])

    def apply(self, table: pa.Table, where: str) -> pa.Table:
        """Return the table with its ``features`` in place of ``inputs``; all other columns stay.

        Raises:
            DatasetError: A value is of the wrong kind, or missing where a preprocessor needs one.
        """
        return self.apply_counted(table, where)[0]

    def apply_counted(self, table: pa.Table, where: str) -> tuple[pa.Table, dict[str, tuple[int, int]]]:
        """Return what ``apply`` does, and by column that an encoder takes, how many of how many values are new to it.

        Columns of which an encoder leaves out what is rare are not counted.
        """
        frame = _frame(table, self.kinds, where)
        counts: dict[str, tuple[int, int]] = {}
        for place, step in enumerate(self.steps):
            counts |= _unseen(frame, step)
            frame = _transformed(frame, step, f"{where}: {_name(place, step)}")
        found = {name: table[name] for name in table.column_names if name not in self.kinds}
        for name in frame.columns:
            found |= _columns(name, frame[name], self.parts.get(name), where)
        others = [name for name in table.column_names if name not in self.inputs]
        return pa.table({name: found[name] for name in (*self.features, *others)}), counts


def fit(
    steps: Sequence[Mapping[str, Any]], train: Sequence[tuple[str, pa.Table]], inputs: Sequence[str]
) -> Preprocessing:
    """Return the preprocessors fitted on the rows of train, each one on what the one before made of them.

    Args:
        steps: ``dataset.preprocessors``.
        train: Tables, with what to call them in messages.
        inputs: The columns to predict from.

    Raises:
        DatasetError: A column is not a feature, or its values are not what a preprocessor needs.
    """
    kinds = _kinds(steps, train, inputs)
    frame = pd.concat([_frame(table, kinds, where) for where, table in train], ignore_index=True)
    fitted: list[dict[str, Any]] = []
    names: dict[str, tuple[str, ...]] = {}
    for place, step in enumerate(steps):
        given = {"type": step["type"], "arguments": {key: step[key] for key in step if key != "type"}}
        where = _name(place, step)
        _check_columns(given["arguments"]["columns"], [*frame.columns, *inputs], where)
        try:
            given["statistics"] = learned(given["type"], given["arguments"], frame)
        except DatasetError as error:
            raise DatasetError(f"{where}: {error.message}", error.hint) from error
        names |= part_names(given["type"], given["arguments"], given["statistics"])
        frame = _transformed(frame, given, where)
        fitted.append(given)
    parts = {name: _part_names(name, frame[name], names.get(name, ())) for name in frame.columns}
    vectors = {name: found for name, found in parts.items() if found}
    features = _features(inputs, kinds, [str(name) for name in frame.columns], vectors)
    others = {name for _, table in train for name in table.column_names if name not in inputs}
    _check_names(features, others)
    return Preprocessing(inputs=tuple(inputs), kinds=kinds, steps=tuple(fitted), parts=vectors, features=features)


def _unseen(frame: pd.DataFrame, step: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return for the columns of an encoder how many values it doesn't know, and how many there are."""
    counts = {}
    if step["type"] in NEEDS_VALUES:
        arguments = step["arguments"]
        for column in (one for one in arguments["columns"] if one not in arguments.get("max_categories", {})):
            values = frame[column].dropna()
            known = int(values.isin(step["statistics"][f"unique_values({column})"]).sum())
            counts[column] = (len(values) - known, len(values))
    return counts


def taken_columns(steps: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return all columns that preprocessors take."""
    return {name for step in steps for name in step["columns"]}


def _kinds(
    steps: Sequence[Mapping[str, Any]], train: Sequence[tuple[str, pa.Table]], inputs: Sequence[str]
) -> dict[str, str]:
    kinds = {}
    for name in (name for name in inputs if name in taken_columns(steps)):
        types = [table.schema.field(name).type for _, table in train]
        kinds[name] = _kind(next((kind for kind in types if not pa.types.is_null(kind)), types[0]))
    return kinds


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list"
    if is_text(kind) or (is_declared(kind) and is_text(kind.value_type)):
        return "text"
    return "number"


def _frame(table: pa.Table, kinds: Mapping[str, str], where: str) -> pd.DataFrame:
    """Return the columns that preprocessors take: float64, text, or lists."""
    found = {}
    for name, kind in kinds.items():
        values = table[name]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        try:
            if kind == "text":
                values = names_of(values, f"{where}: feature '{name}'")
            elif kind == "number":
                values = (values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values).cast(pa.float64())
        except pa.ArrowException as error:
            raise DatasetError(f"{where}: feature '{name}' is not a number: {str(error)[:120]}") from error
        found[name] = values
    return pa.table(found).to_pandas()


def _transformed(frame: pd.DataFrame, step: Mapping[str, Any], where: str) -> pd.DataFrame:
    from ray.data import preprocessors

    kind, arguments = step["type"], step["arguments"]
    try:
        preprocessor = getattr(preprocessors, kind)(**arguments)
        preprocessor.stats_ = as_ray(step["statistics"])
        return preprocessor.transform_batch(frame)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        names = ", ".join(arguments["columns"])
        imputer = f"{{type: SimpleImputer, columns: [{names}], strategy: most_frequent}}"
        hint = f"Fill them in, or train with this before it: {imputer}"
        raise DatasetError(f"{where}: {error}", hint if NULLS in str(error) else None) from error


def _name(place: int, step: Mapping[str, Any]) -> str:
    return f"dataset.preprocessors[{place}] ({step['type']})"


def _check_columns(names: Sequence[str], there: Sequence[str], where: str) -> None:
    for name in names:
        if name not in there:
            raise DatasetError(f"{where} names '{name}', which is not a feature.", nearest_or_all(name, there))


def _part_names(name: str, values: pd.Series[Any], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the parts of a column of vectors are called; nothing if it holds single values."""
    first = next((value for value in values if _is_vector(value)), None) if values.dtype == object else None
    if first is None:
        return ()
    return known if len(known) == len(first) else tuple(f"{name}_{place}" for place in range(len(first)))


def _is_vector(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _features(
    inputs: Sequence[str], kinds: Mapping[str, str], made: Sequence[str], parts: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the columns that come out: in the places of those that went in, and new ones at the end."""
    kept = [name for name in inputs if name in made or name not in kinds]
    new = [name for name in made if name not in inputs]
    return tuple(part for name in (*kept, *new) for part in parts.get(name, (name,)))


def _check_names(features: Sequence[str], others: set[str]) -> None:
    for name in features:
        if name in others or features.count(name) > 1:
            message = f"dataset.preprocessors create a feature '{name}', but a column of that name exists."
            raise DatasetError(message, "Choose another name with output_columns.")


def _columns(name: str, values: pd.Series[Any], parts: Sequence[str] | None, where: str) -> dict[str, pa.Array]:
    """Return what a column of the frame is as features: itself, or the parts of its vectors."""
    if parts is None:
        return {name: pa.array(values, from_pandas=True)}
    nothing = np.full(len(parts), np.nan)
    try:
        rows = [np.asarray(value, np.float64) if _is_vector(value) else nothing for value in values]
        matrix = np.stack([nothing, *rows])[1:]
    except ValueError as error:
        message = (
            f"{where}: after dataset.preprocessors '{name}' still contains lists, not vectors of {len(parts)} numbers."
        )
        raise DatasetError(message, f"Encode them: {{type: MultiHotEncoder, columns: [{name}]}}") from error
    return {part: pa.array(column) for part, column in zip(parts, matrix.T, strict=True)}
