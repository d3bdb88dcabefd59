"""What decides the split of a table's row: columns of the user's choice, or else all that the row holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.base import Columns, take
from rtrain.datasets.conf import SharesConf, TableSplitConf
from rtrain.datasets.files import SPLIT_NAMES
from rtrain.datasets.splitting.left_out import SPLITS
from rtrain.datasets.splitting.row_hash import row_hashes, texts_of, value_hashes
from rtrain.datasets.splitting.shares import KEY, NAMED, TIME, limited, split_parts
from rtrain.datasets.tables.categories import is_text
from rtrain.errors import DatasetError

WAYS = {"by_group": "group", "by_time": "time", "by_hash": "hash"}


@dataclass(frozen=True, kw_only=True)
class SplitKeys:
    """The columns that decide, by the key that names them: ``by_group``, ``by_time``, ``by_hash``, ``by_column``."""

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    """Of ``by_column``: the split that each text means."""
    rest: str | None = None
    """Of ``by_column``: the split of all other texts; None if there should be no other one."""

    @classmethod
    def of(cls, conf: TableSplitConf) -> SplitKeys:
        """Return what the config says."""
        hashed = [conf.by_hash] if isinstance(conf.by_hash, str) else conf.by_hash
        values, rest, named = SPLIT_NAMES, None, conf.by_column
        if isinstance(named, Mapping):
            values = {_folded(value): split for split in SPLITS for value in named.get(split) or ()}
            named, rest = named["column"], None if "train" in named else "train"
        keys = {"by_group": [conf.by_group], "by_time": [conf.by_time], "by_hash": hashed, "by_column": [named]}
        names = {key: tuple(columns) for key, columns in keys.items() if columns and columns != [None]}
        return cls(names=names, values=values, rest=rest)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read."""
        return tuple(dict.fromkeys(name for names in self.names.values() for name in names))

    @property
    def way(self) -> str:
        """How ``split_parts`` shares rows out."""
        return next((way for key, way in WAYS.items() if key in self.names), "row")

    def decode(self, table: pa.Table, where: str, first_row: int = 0) -> Columns:
        """Return what decides: of ``KEY``, ``TIME`` and ``NAMED`` those that the columns make.

        Raises:
            DatasetError: A value is missing, or not what its key wants; names column and row.
        """
        found: dict[str, np.ndarray] = {}
        for key, names in self.names.items():
            what = [f"{where}: dataset.split.{key} '{name}'" for name in names]
            values = [table[name].combine_chunks() for name in names]
            for one, place in zip(values, what, strict=True):
                _check_present(one, place, first_row)
            if key == "by_column":
                found[NAMED] = self._named(values[0], what[0], first_row)
            elif key == "by_time":
                found[TIME] = _times(values[0], what[0])
            else:
                hashes = [value_hashes(one, place) for one, place in zip(values, what, strict=True)]
                found[KEY] = hashes[0] if len(hashes) == 1 else row_hashes(hashes)
        return found

    def _named(self, values: pa.Array, what: str, first_row: int) -> np.ndarray:
        """Return the split of each row, (rows,) int8: its place in ``SPLITS``."""
        coded = texts_of(values, what).dictionary_encode()
        splits = [self.values.get(_folded(text), self.rest) for text in coded.dictionary.to_pylist()]
        known = np.asarray([-1 if split is None else SPLITS.index(split) for split in splits], np.int8)
        found: np.ndarray = known[np.asarray(coded.indices)]
        if (found < 0).any():
            row = int((found < 0).argmax())
            value = values[row].as_py()
            message = f"{what} is {value!r} in row {first_row + row + 1}, which is not mapped to a split."
            column = self.names["by_column"][0]
            hint = f"Map it to one, e.g. 'dataset.split.by_column={{column: {column}, test: [{value}]}}'"
            raise DatasetError(message, f"Known values: {', '.join(self.values)}. {hint}")
        return found

    def check_alone(self, parts: Collection[str]) -> None:
        """Raise a DatasetError if ``by_column`` splits data that has files for its splits already."""
        if "by_column" in self.names and len(parts) > 1:
            column, own = self.names["by_column"][0], " and ".join(parts)
            message = f"dataset.split.by_column={column} splits the train rows, but the data already has {own}."
            raise DatasetError(message, "Name only the train files in dataset.path, or remove by_column.")

    def check_named(self, num_rows: Mapping[str, int]) -> None:
        """Raise a DatasetError if ``by_column`` leaves out ``train``, all others, or a split that it has values for.

        Args:
            num_rows: Rows of each split, 0 too.
        """
        column = self.names["by_column"][0]
        wanted = {"train"} if self.values is SPLIT_NAMES else {"train", *self.values.values()}
        for split in (one for one in SPLITS if one in wanted and not num_rows[one]):
            means = [text for text, meant in self.values.items() if meant == split]
            message = f"dataset.split.by_column: no row of '{column}' belongs to {split}."
            raise DatasetError(message, f"Expected: {', '.join(means)}." if means else "Use fewer values.")
        if not num_rows["val"] and not num_rows["test"]:
            message = f"dataset.split.by_column: every row of '{column}' belongs to train."
            hint = f"Name the values of the others: 'dataset.split.by_column={{column: {column}, test: [...]}}'"
            raise DatasetError(message, hint)


def split_table(parts: Mapping[str, Columns], keys: SplitKeys, conf: SharesConf, stratify: bool) -> dict[str, Columns]:
    """Return the splits of decoded rows that have what ``keys`` made of them.

    Raises:
        DatasetError: The shares make no sense, a split has no row, or a column tears a query of a ranking apart.
    """
    ready = {split: _keyed(part, keys) for split, part in parts.items()}
    if "by_column" in keys.names:
        keys.check_alone(parts)
        ready = _by_column(limited(ready["train"], conf, stratify, keys.way), keys)
        conf = replace(conf, limit=None, sample=1.0)
    return split_parts(ready, conf, stratify, keys.way)


def _keyed(part: Columns, keys: SplitKeys) -> Columns:
    group = part.get("group")
    if group is None:
        is_text = part["x"].ndim == 1  # texts, or the numbers of their rows
        return part if KEY in part or is_text else {**part, KEY: row_hashes((part["x"], part["y"]))}
    begins = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    for name, key in ((KEY, keys.way), (NAMED, "column")):
        if name in part and (np.minimum.reduceat(part[name], begins) != np.maximum.reduceat(part[name], begins)).any():
            message = (
                f"dataset.split.by_{key}: rows of the same dataset.group differ in it, but a group is never split."
            )
            raise DatasetError(message, f"Use the column of dataset.group as dataset.split.by_{key}, or a coarser one.")
    found = {KEY: group.view(np.uint64), **part}
    if TIME in part:
        found[TIME] = np.repeat(np.maximum.reduceat(part[TIME], begins), np.diff(np.r_[begins, len(group)]))
    return found


def _by_column(train: Columns, keys: SplitKeys) -> dict[str, Columns]:
    """Return the splits that the rows name."""
    rows = {split: np.flatnonzero(train[NAMED] == place) for place, split in enumerate(SPLITS)}
    keys.check_named({split: len(chosen) for split, chosen in rows.items()})
    return {split: take(train, chosen) for split, chosen in rows.items() if len(chosen)}


def _times(values: pa.Array, what: str) -> np.ndarray:
    """Return a column of times as numbers that grow with them, (rows,); of dates, microseconds since 1970.

    Whole numbers are int64, which keeps all digits; others, and those beyond it, float64.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    try:
        if pa.types.is_date(kind):
            values = values.cast(pa.timestamp("us"))
        elif is_text(kind):
            values = values.cast(pa.timestamp("us", "UTC" if len(values) and _has_zone(values[0].as_py()) else None))
        elif pa.types.is_timestamp(kind):
            values = values.cast(pa.timestamp("us", kind.tz), safe=False)
        elif pa.types.is_duration(kind):
            values = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
        elif pa.types.is_time(kind):
            values = values.cast(pa.time64("us"), safe=False).cast(pa.int64())
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        if pa.types.is_integer(values.type) or (pa.types.is_decimal(values.type) and values.type.scale <= 0):
            with suppress(pa.ArrowInvalid):
                return np.asarray(values.cast(pa.int64()))
        return np.asarray(values.cast(pa.float64(), safe=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"{what} contains no times ({kind}): {str(error)[:120]}"
        raise DatasetError(
            message, "Times must be dates, numbers, or text such as 2024-12-31 or 2024-12-31 23:59:59."
        ) from error


def check_times(schemas: Iterable[tuple[str, pa.Schema]], keys: SplitKeys) -> None:
    """Refuse tables whose columns of ``by_time`` can't be compared.

    Raises:
        DatasetError: The column holds dates in one table and numbers in another, say; names both.
    """
    found: dict[str, tuple[str, str]] = {}
    for where, schema in schemas:
        for name in (name for name in keys.names.get("by_time", ()) if name in schema.names):
            holds = _scale(schema.field(name).type)
            other, there = found.setdefault(name, (holds, where))
            if holds != other:
                message = (
                    f"{where}: dataset.split.by_time '{name}' contains {holds}, but in {there} it contains {other}."
                )
                raise DatasetError(message, "Use the same format in all files.")


def _scale(kind: pa.DataType) -> str:
    """Return in a word what ``_times`` makes numbers of."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or is_text(kind):
        return "dates"
    if pa.types.is_duration(kind):
        return "durations"
    return "times of day" if pa.types.is_time(kind) else "numbers"


def _has_zone(text: str) -> bool:
    return text.endswith("Z") or (text[-6:-5] in ("+", "-") and text[-3:-2] == ":")


def refuse_keys(conf: TableSplitConf, rows: str) -> None:
    """Raise a DatasetError if the config names a column to split by, and ``rows`` have none."""
    for key, names in SplitKeys.of(conf).names.items():
        message = f"dataset.split.{key}={','.join(names)} names a column of a table, but {rows} have none."
        raise DatasetError(message, f"Leave dataset.split.{key} out, or use a table.")


def _folded(value: object) -> str:
    return str(value).strip().casefold()


def _check_present(values: pa.Array, what: str, first_row: int) -> None:
    missing = pc.is_null(values, nan_is_null=True)
    if pc.any(missing).as_py():
        row = first_row + missing.index(True).as_py() + 1
        raise DatasetError(f"{what} is empty in row {row}.", "Fill it in, or remove such rows.")
