"""Tables of numbers: from columns of a file to the rows that a trainer takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rtrain.config.did_you_mean import closest, did_you_mean, nearest_or_all
from rtrain.datasets.base import Columns
from rtrain.datasets.conf import ColumnsConf, is_dropped
from rtrain.datasets.labels import Labels
from rtrain.datasets.splitting.by_column import SplitKeys
from rtrain.datasets.tables.categories import codes_of, is_number, num_missing
from rtrain.datasets.tables.column_roles import Roles
from rtrain.datasets.tables.column_types import check_types, is_numeric
from rtrain.datasets.tables.preprocessing import Preprocessing
from rtrain.datasets.tables.spellings import BOOLEANS, is_mark
from rtrain.errors import DatasetError

CHUNK_ROWS = 4_096


class TableFormat(Protocol):
    """Reads tables from files of one format; pickled to the processes that read."""

    @property
    def endings(self) -> Sequence[str]:
        """How the files' names end."""

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns and their types."""

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return about how large the rows are in memory, without reading them."""

    def pieces(self, file: Path) -> list[Any]:
        """Return the key of each part that can be read by itself, in the order of the rows.

        A key is the name of the file, or a tuple that begins with it.
        """

    def batches(
        self, piece: Any, columns: Sequence[str], widened: Sequence[str] = (), first_row: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the rows of a part, some at a time; errors of the format are DatasetErrors.

        Args:
            piece: A key of ``pieces``.
            columns: Which columns.
            widened: Those that may become floats, where a format has to guess types from the beginning of a file: what
                comes later may have a point.
            first_row: Rows of the file before the part, for messages.
        """


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """Which columns become ``x`` and ``y``, and how."""

    features: tuple[str, ...]
    labels: Labels
    on_missing: str
    fill: tuple[float, ...] = ()
    """What missing values become with ``on_missing: mean``; unset while the means are not known."""
    dtype: str = "float32"
    """Of ``x``."""
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Features that are categories, with the names of their codes."""
    texts: tuple[str, ...] = ()
    """Those of them whose names are text as it was read: 01 is another one than 1."""
    roles: Roles = field(default_factory=Roles)
    preprocessing: Preprocessing | None = None
    """What makes the features of other columns."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that the features are made of."""
        return self.features if self.preprocessing is None else self.preprocessing.inputs

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read, the label at the end."""
        return (*self.inputs, *self.roles.columns, self.labels.column)

    @property
    def row_bytes(self) -> int:
        """Size of a row once decoded."""
        return row_bytes(self.dtype, len(self.features))

    def filled(self, means: tuple[float, ...]) -> TableSpec:
        """Return the spec that replaces missing values by ``means``.

        Raises:
            DatasetError: A column has no value at all, and so no mean.
        """
        for name, mean in zip(self.features, means, strict=True):
            if mean != mean and name not in self.categories:
                message = f"feature '{name}' has no value in the train split, so there is no mean to fill in."
                raise DatasetError(message, "Remove it from dataset.features.")
        return replace(self, fill=means)

    def decided(self, missing: Collection[str]) -> TableSpec:
        """Return the spec for later rows: in place of ``auto``, they may lack values where some of training did.

        Args:
            missing: The features of which some values are missing.
        """
        if self.on_missing != "auto":
            return self
        return replace(self, on_missing="keep" if missing else "error")

    def decode(self, table: pa.Table, where: str, first_row: int = 0) -> Columns:
        """Return ``x``, (rows, features) of ``dtype``, ``y``, and the columns of ``roles`` of a table.

        Raises:
            DatasetError: A value is missing or is not a number; names column and row, counted from 1.
        """
        y = self.labels.encode(table[self.labels.column], where, first_row)
        more = self.roles.decode(table, where, first_row)
        return {"x": self.decode_features(table, where, first_row), "y": y, **more}

    def decode_features(self, table: pa.Table, where: str, first_row: int = 0) -> np.ndarray:
        """Return the features alone, (rows, features) of ``dtype``."""
        prepared = table if self.preprocessing is None else self.preprocessing.apply(table, where)
        return self._decoded(prepared, where, first_row)

    def decode_new(
        self, table: pa.Table, where: str, first_row: int = 0
    ) -> tuple[np.ndarray, dict[str, tuple[int, int]]]:
        """Return the features, and by column of categories how many of how many values training never saw.

        Raises:
            DatasetError: A value is missing or not numeric; names column and row.
        """
        prepared, counts = table, dict[str, tuple[int, int]]()
        if self.preprocessing is not None:
            prepared, counts = self.preprocessing.apply_counted(table, where)
        try:
            x = self._decoded(prepared, where, first_row)
        except DatasetError as error:  # its hint is about keys that a prediction can't change
            is_mark = "dataset.na_values" in (error.hint or "")
            hint = error.hint if is_mark else "Correct it: rows are read as in training, where no such value occurred."
            raise DatasetError(error.message, hint) from error
        for name in self.categories:
            known = int(np.count_nonzero(~np.isnan(x[:, self.features.index(name)])))
            num_values = len(x) - num_missing(prepared[name], self.categories[name])
            counts[name] = (num_values - known, num_values)
        return x, counts

    def _decoded(self, table: pa.Table, where: str, first_row: int) -> np.ndarray:
        for name in self.features:
            values = table[name]
            if name not in self.categories and not is_numeric(values.type) and values.null_count < len(values):
                raise self._not_numeric(table, name, where, first_row)
        columns = [self._values(table[name], name, where) for name in self.features]
        x = np.empty((table.num_rows, len(columns)), self.dtype)
        for start in range(0, len(x), CHUNK_ROWS):  # a chunk stays in the processor's cache, several times as fast
            rows = slice(start, start + CHUNK_ROWS)
            for index, column in enumerate(columns):
                x[rows, index] = column[rows]
        self._check_finite(x, where, first_row)
        return self.fill_missing(x)

    def _values(self, values: pa.ChunkedArray, name: str, where: str) -> np.ndarray:
        names = self.categories.get(name)
        if names is None:
            return _numbers(values, self.dtype)
        return codes_of(values, names, f"{where}: feature '{name}'", zeros_count=name in self.texts)

    def _not_numeric(self, table: pa.Table, name: str, where: str, first_row: int) -> DatasetError:
        place, text = _first_text(table[name], first_row)
        names = ",".join(one for one in self.features if one == name or one in self.categories)
        numbers = f"Read it as numbers: 'dataset.dtypes={{{name}: float32}}', take" if "the text" in place else "Take"
        marks = f"If it marks a missing value: 'dataset.na_values=[\"{text.strip()}\"]'.\n" if is_mark(text) else ""
        return DatasetError(
            f"{where}: feature '{name}' is not numeric: {place}.",
            f"{marks}{numbers} it as a category: 'dataset.categorical=[{names}]', drop it: "
            f"'dataset.drop=[{name}]', or correct the value.",
        )

    def fill_missing(self, x: np.ndarray) -> np.ndarray:
        """Return ``x`` with the means for missing values, once they are known."""
        if self.fill:
            np.copyto(x, np.asarray(self.fill, x.dtype), where=np.isnan(x))
        return x

    def _check_finite(self, x: np.ndarray, where: str, first_row: int) -> None:
        if np.isfinite(x).all():
            return
        infinite = np.isinf(x)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DatasetError(
                f"{where}: feature '{self.features[column]}' is infinite, or too large for {self.dtype}, "
                f"in row {first_row + row + 1}.",
                "Correct the value, or remove the column from dataset.features.",
            )
        missing = np.isnan(x)
        missing[:, [name in self.categories for name in self.features]] = False
        if self.on_missing == "error" and missing.any():
            raise _missing_values(self.features, missing, where, first_row)


def row_bytes(dtype: str, num_features: int) -> int:
    """Return the size of a decoded row, its label included."""
    return (4 if dtype == "float32" else 8) * num_features + 8


def _missing_values(features: Sequence[str], missing: np.ndarray, where: str, first_row: int) -> DatasetError:
    counts = missing.sum(axis=0)
    parts = [
        f"'{name}' {count} times (first in row {first_row + int(missing[:, index].argmax()) + 1})"
        for index, (name, count) in enumerate(zip(features, counts, strict=True))
        if count
    ]
    return DatasetError(
        f"{where}: values are missing in {', '.join(parts)}.",
        "Use dataset.on_missing=mean to fill in the mean of the train split, or dataset.on_missing=keep for trees.",
    )


def _numbers(values: pa.ChunkedArray, dtype: str) -> np.ndarray:
    """Return a feature column as floats, with NaN for what is missing."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    kind = pa.float32() if pa.types.is_floating(values.type) and dtype == "float32" else pa.float64()
    with np.errstate(over="ignore"):
        return np.asarray(values.cast(kind, safe=False).to_numpy())


def _first_text(values: pa.ChunkedArray, first_row: int) -> tuple[str, str]:
    """Return the place of the first value that is neither a number nor true or false, or else of the first text.

    The second is the value.
    """
    found = [(row, value.as_py()) for row, value in enumerate(values) if value.is_valid]
    words = [(row, value) for row, value in found if not is_number(value)]
    row, value = next((one for one in words if str(one[1]).strip() not in BOOLEANS), (words or found)[0])
    shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
    return f"row {first_row + row + 1} contains {'the text ' if is_number(value) else ''}{shown}", str(value)


def choose_features(conf: ColumnsConf, schema: pa.Schema, where: str) -> tuple[str, ...]:
    """Return the feature columns.

    Raises:
        DatasetError: The label or a feature is not a column of the file, or is named twice; or there is no feature.
    """
    check_columns([conf.label], schema, where, "label")
    roles = Roles.of(conf)
    for key, names in (("weight", conf.weight), ("group", conf.group)):
        check_columns([names] if names else [], schema, where, key)
    check_columns(conf.base_margin, schema, where, "base_margin")
    check_columns(conf.ids, schema, where, "ids")
    check_columns(list(conf.dtypes or {}), schema, where, "dtypes")
    _check_drop(conf, schema, where)
    keys = SplitKeys.of(conf.split)
    for key, columns in keys.names.items():
        check_columns(columns, schema, where, f"split.{key}")
    used = {conf.label, *conf.ids, *roles.columns}
    features = (
        [name for name in schema.names if name not in {*used, *keys.columns}]
        if conf.features is None
        else conf.features
    )
    features = [name for name in features if not is_dropped(name, conf.drop)]
    check_columns(features, schema, where, "features")
    _check_categorical(conf, features, where)
    if conf.label in features:
        raise DatasetError(
            f"dataset.features contains the label '{conf.label}'.", "Remove it: the model would see the label."
        )
    for name in used & set(features):
        raise DatasetError(f"dataset.features contains '{name}', which has another role.", "Name it in only one place.")
    if not features:
        raise DatasetError(f"{where}: no column except the label '{conf.label}' can be a feature.")
    check_types(features, schema, where, conf)
    return tuple(features)


def used_columns(conf: ColumnsConf, features: Sequence[str]) -> list[str]:
    """Return all columns that training needs, the label at the end."""
    others = [name for name in (*Roles.of(conf).columns, *SplitKeys.of(conf.split).columns) if name != conf.label]
    return list(dict.fromkeys([*features, *others, conf.label]))


def _check_drop(conf: ColumnsConf, schema: pa.Schema, where: str) -> None:
    for pattern in conf.drop:
        if not any(fnmatchcase(name, pattern) for name in schema.names):
            check_columns([pattern], schema, where, "drop")


def _check_categorical(conf: ColumnsConf, features: Sequence[str], where: str) -> None:
    for name in conf.categorical or ():
        if name not in features:
            hint = nearest_or_all(name, features, 0.5)
            raise DatasetError(f"{where}: dataset.categorical names '{name}', which is not a feature.", hint)


def check_columns(names: Sequence[str], schema: pa.Schema, where: str, key: str) -> None:
    """Raise a DatasetError if a name is not a column, or the name of several."""
    there, asked = Counter(schema.names), Counter(names)
    for name in names:
        found = there[name]
        if found > 1:
            leave = f", or drop them: 'dataset.drop=[{name}]'" if key == "features" else ""
            raise DatasetError(f"{where}: there are {found} columns '{name}'.", f"Rename all but one{leave}")
        if asked[name] > 1:
            raise DatasetError(f"{where}: dataset.{key} names '{name}' {asked[name]} times.")
        if not found:
            close = closest(name, schema.names, 0.5) if key == "label" else None
            hint = did_you_mean(f"dataset.label={close}") if close else nearest_or_all(name, schema.names, 0.5)
            raise DatasetError(f"{where}: dataset.{key} names '{name}', which is not a column.", hint)


def check_has(names: Sequence[str], schema: pa.Schema, where: str, why: str) -> None:
    """Raise a DatasetError if a table lacks a column, or has several of it.

    Args:
        names: Columns that it needs.
        schema: Those that it has.
        where: What to call it.
        why: What is true of the columns: ``the model takes``, say.
    """
    there = set(schema.names)
    for name in names:
        if name not in there:
            hint = nearest_or_all(name, schema.names, 0.5)
            raise DatasetError(f"{where}: there is no column '{name}', which {why}.", hint)
    check_columns(names, schema, where, "columns")
