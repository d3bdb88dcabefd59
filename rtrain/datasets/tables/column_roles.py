"""Columns of a table that are neither features nor label: weights, queries, scores to start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.base import Columns
from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.splitting.by_column import SplitKeys
from rtrain.datasets.tables.casts import TEXTS
from rtrain.datasets.tables.categories import is_fraction
from rtrain.datasets.without_effect import changed
from rtrain.errors import DatasetError

OF_TABLES = (
    *("features", "drop", "categorical", "ids", "weight", "group", "base_margin"),
    *("dtype", "dtypes", "preprocessors", "na_values", "on_missing", "max_unseen"),
)
"""Keys of ``ColumnsConf`` that mean nothing where rows are not a table."""


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which columns become ``weight``, ``group`` and ``base_margin``."""

    weight: str | None = None
    group: str | None = None
    base_margin: tuple[str, ...] = ()

    @classmethod
    def of(cls, conf: ColumnsConf) -> Roles:
        """Return what the config says.

        Raises:
            DatasetError: A ranking has no groups, or something else has some.
        """
        if conf.task == "ranking" and conf.group is None:
            message = "dataset.task=ranking needs to know which rows belong to one query."
            raise DatasetError(message, "Set their column: dataset.group=...")
        if conf.group is not None and conf.task != "ranking":
            raise DatasetError(
                f"dataset.group={conf.group} names the queries of a ranking, but dataset.task is {conf.task}.",
                f"Use dataset.task=ranking; to keep equal values in one split: dataset.split.by_group={conf.group}",
            )
        return cls(weight=conf.weight, group=conf.group, base_margin=tuple(conf.base_margin))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read."""
        return tuple(dict.fromkeys(name for name in (self.weight, self.group, *self.base_margin) if name))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the keys of ``Columns`` that there will be."""
        there = {"weight": self.weight, "group": self.group, "base_margin": self.base_margin}
        return tuple(name for name, column in there.items() if column)

    def decode(self, table: pa.Table, where: str, first_row: int) -> Columns:
        """Return these columns of a table.

        Raises:
            DatasetError: A value is missing or no number, or a weight is negative; names column and row.
        """
        found: dict[str, np.ndarray] = {}
        if self.weight:
            found["weight"] = _finite(table, self.weight, "weight", where, first_row)
            if (found["weight"] < 0).any():
                row = first_row + int((found["weight"] < 0).argmax()) + 1
                raise DatasetError(f"{where}: dataset.weight '{self.weight}' is negative in row {row}.")
        if self.group:
            found["group"] = _groups(table, self.group, where, first_row)
        if self.base_margin:
            margins = [_finite(table, name, "base_margin", where, first_row) for name in self.base_margin]
            found["base_margin"] = margins[0] if len(margins) == 1 else np.stack(margins, axis=1)
        return found


def compared_columns(conf: ColumnsConf) -> tuple[str, ...]:
    """Return the columns whose values are compared with one another, so that all digits of numbers count."""
    deciding = SplitKeys.of(conf.split).columns
    dtypes = conf.dtypes or {}
    texts = [name for name, dtype in dtypes.items() if dtype in TEXTS]
    named = [conf.label, *([conf.group] if conf.group else []), *conf.ids, *(conf.categorical or ()), *deciding]
    return tuple(dict.fromkeys([*(name for name in named if name not in dtypes), *texts]))


def refuse_table_keys(conf: ColumnsConf, rows: str) -> None:
    """Raise a DatasetError if the config says something of the columns of a table, and ``rows`` have none."""
    for key in changed(conf, OF_TABLES):
        message = f"dataset.{key} requires columns of a table, but {rows} have none."
        raise DatasetError(message, f"Leave dataset.{key} out, or use a table.")


def grouped(part: Columns) -> Columns:
    """Return the rows with those of each group together, groups in the order of their first rows."""
    if "group" not in part:
        return part
    _, first, inverse = np.unique(part["group"], return_index=True, return_inverse=True)
    places = first[inverse]
    if (places[1:] >= places[:-1]).all():
        return part
    order = np.argsort(places, kind="stable")
    return {name: values[order] for name, values in part.items()}


def _finite(table: pa.Table, column: str, key: str, where: str, first_row: int) -> np.ndarray:
    """Return a column of numbers, (rows,) float32."""
    try:
        values = np.asarray(table[column].cast(pa.float32(), safe=False).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(
            f"{where}: dataset.{key} '{column}' is of type {table[column].type}, not a number."
        ) from error
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = first_row + int(wrong.argmax()) + 1
        raise DatasetError(f"{where}: dataset.{key} '{column}' is empty, NaN or infinite in row {row}.")
    return values


def _groups(table: pa.Table, column: str, where: str, first_row: int) -> np.ndarray:
    """Return a number for each row, (rows,) int64: whole numbers as they are, and a hash of the text of all else.

    It depends on the value alone: 1 is the same group in a file with 1.5 and in one without.
    """
    values = table[column].combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = pc.is_null(values, nan_is_null=True)
    if pc.any(missing).as_py():
        row = first_row + missing.index(True).as_py() + 1
        raise DatasetError(f"{where}: dataset.group '{column}' is empty in row {row}.")
    try:
        if pa.types.is_signed_integer(values.type):
            return np.asarray(values.cast(pa.int64()))
        if not (pa.types.is_integer(values.type) or is_fraction(values.type)):
            return _hashes(values.cast(pa.string()))
        found = np.empty(len(values), np.int64)
        for mask, numbers in _kinds_of(values):
            found[np.asarray(mask)] = numbers(values.filter(mask))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(f"{where}: dataset.group '{column}' can't be used as groups: {error}") from error
    return found


def _kinds_of(values: pa.Array) -> list[tuple[pa.Array, Callable[[pa.Array], np.ndarray]]]:
    """Return which numbers are an int64, a larger whole number or a fraction, and what makes an int64 of them."""
    floats = values.cast(pa.float64(), safe=False)
    is_whole = pc.equal(pc.trunc(values), values) if is_fraction(values.type) else pc.is_valid(values)
    is_whole = pc.and_(is_whole, pc.is_finite(floats))
    # Lower numbers than -2^63 are rounded to it.
    fits = pc.and_(pc.less(floats, 2.0**63), pc.greater(floats, -(2.0**63)))
    return [
        (pc.and_(is_whole, fits), lambda small: np.asarray(small.cast(pa.int64()))),
        (pc.and_not(is_whole, fits), lambda large: _hashes(_whole_texts(large))),
        (pc.invert(is_whole), lambda rest: _hashes(_fractions(rest))),
    ]


def _whole_texts(values: pa.Array) -> pa.Array:
    """Return whole numbers as text, all digits of them: 2^63 is the same as a float and as a decimal."""
    return pa.array([str(int(value)) for value in values.to_pylist()], pa.string())


def _fractions(values: pa.Array) -> pa.Array:
    """Return fractions as text: 1.5 and the decimal 1.50 are the same."""
    texts = values.cast(pa.string())
    return pc.utf8_rtrim(texts, "0") if pa.types.is_decimal(values.type) else texts


def _hashes(texts: pa.Array) -> np.ndarray:
    """Return a number for each text, (rows,) int64."""
    coded = texts.dictionary_encode()
    numbers = [int.from_bytes(blake2b(text.encode(), digest_size=7).digest()) for text in coded.dictionary.to_pylist()]
    return np.take(np.asarray(numbers, np.int64), np.asarray(coded.indices))
