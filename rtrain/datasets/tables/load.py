"""From the files of a table to a dataset, in memory or streamed: what the csv and parquet sources share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rtrain.datasets.base import Columns, Dataset, DatasetInfo
from rtrain.datasets.conf import LargeTableConf, TableConf
from rtrain.datasets.files import files_by_split, files_fingerprint
from rtrain.datasets.labels import Labels
from rtrain.datasets.mean_std import given_statistics, tell_of_digits, tell_of_empty
from rtrain.datasets.memory import MemoryChoice, choose_memory
from rtrain.datasets.splitting.by_column import SplitKeys, check_times
from rtrain.datasets.splitting.left_out import SPLITS, or_leave_out, read_for
from rtrain.datasets.splitting.shares import (
    KEY,
    NAMED,
    TIME,
    borders,
    check_not_empty,
    check_way,
    num_wanted,
    shares,
)
from rtrain.datasets.streamed import Piece, RowFilter, StreamSplit
from rtrain.datasets.tables.adjusted import Adjustment
from rtrain.datasets.tables.categories import CategoryScan, tell_of_names, unscaled
from rtrain.datasets.tables.column_roles import Roles
from rtrain.datasets.tables.column_types import check_alike
from rtrain.datasets.tables.formats.byte_ranges import ByteRange
from rtrain.datasets.tables.in_memory import label_scan, resident_table, task_of
from rtrain.datasets.tables.predict_rows import Files, encoding_of
from rtrain.datasets.tables.preprocessing import fit
from rtrain.datasets.tables.spec import TableFormat, TableSpec, check_has, choose_features, used_columns
from rtrain.errors import DatasetError

STATISTICS_ROWS = 1_000_000
"""Rows of a streamed train split that ``normalize: true`` looks at, at least, if there are so many."""

Statistics = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and standard deviation, per feature; empty for none."""


def load_table(name: str, reading: TableFormat, conf: TableConf, files: Files | None = None) -> Dataset:
    """Return the dataset that ``conf`` describes, read by ``reading``; of ``files`` in place of all at ``conf.path``.

    Raises:
        DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
    """
    files = files_by_split(conf.path, reading.endings, conf.split) if files is None else files
    table = FileTable.of(name, reading, conf, files)
    choice = choose_memory(conf.memory, table.num_bytes)
    return _load_resident(table, choice) if choice.memory == "resident" else load_stream(table, choice)


@dataclass(frozen=True)
class FileTable:
    """A table whose columns are known and whose rows are not."""

    name: str
    reading: TableFormat
    conf: LargeTableConf
    files: Files
    features: tuple[str, ...]

    @classmethod
    def of(cls, name: str, reading: TableFormat, conf: LargeTableConf, files: Files) -> FileTable:
        """Look at the columns of ``files``.

        Raises:
            DatasetError: One is missing, or can't be used.
        """
        reading = Adjustment(conf.na_values, conf.dtypes).format(reading)
        return cls(name, reading, conf, files, _checked_features(files, reading, conf))

    @property
    def num_bytes(self) -> int:
        """About how large the rows are in memory."""
        num_words = len(self.features) * (1 if self.conf.dtype == "float32" else 2) + 1
        return sum(self.reading.decoded_bytes(file, num_words) for part in self.files.values() for file in part)

    def spec(self, labels: Labels) -> TableSpec:
        return TableSpec(
            features=self.features,
            labels=labels,
            on_missing=self.conf.on_missing,
            dtype=self.conf.dtype,
            roles=Roles.of(self.conf),
        )


def _checked_features(files: Files, reading: TableFormat, conf: LargeTableConf) -> tuple[str, ...]:
    """Return the feature columns, which all files have to have."""
    first = files["train"][0]
    features = choose_features(conf, reading.schema(first), str(first))
    for split, part in files.items():
        for file in part:
            if file != first:
                with read_for(split):
                    check_has(used_columns(conf, features), reading.schema(file), str(file), f"{first} has")
    return features


def _load_resident(table: FileTable, choice: MemoryChoice) -> Dataset:
    columns = used_columns(table.conf, table.features)
    tables = {
        split: [(str(file), table.reading.read(file, columns)) for file in part] for split, part in table.files.items()
    }
    _check_rows({split: sum(read.num_rows for _, read in part) for split, part in tables.items()}, table.files)
    return resident_table(table.name, tables, table.features, table.conf, choice.reason)


def _check_rows(num_rows: Mapping[str, int], files: Files) -> None:
    for split, count in num_rows.items():
        if not count:
            message = f"{files[split][0]}: there are no rows for the split '{split}'."
            raise or_leave_out(split, DatasetError(message, "Check dataset.path."))


@dataclass(frozen=True)
class TableReader:
    """Reads the pieces of a streamed table; a key is (file, its rows before the piece, piece of the format)."""

    reading: TableFormat
    spec: TableSpec
    keys: SplitKeys

    def read(self, key: Any) -> Iterator[Columns]:
        """Yield the decoded rows of a piece."""
        where, row, piece = key
        columns = dict.fromkeys((*self.keys.columns, *self.spec.columns))
        for batch in self.reading.batches(piece, list(columns), self.spec.inputs, row):
            yield {**self.spec.decode(batch, where, row), **self.keys.decode(batch, where, row)}
            row += batch.num_rows


def load_stream(table: FileTable, choice: MemoryChoice) -> Dataset:
    """Return the dataset of a table whose rows are read from its files in each epoch.

    Raises:
        DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
    """
    conf, keys = table.conf, SplitKeys.of(table.conf.split)
    if conf.group is not None:
        message = (
            f"dataset.group: groups can be kept together only in memory, but this data is streamed: {choice.reason}"
        )
        raise DatasetError(message, "Use dataset.memory=resident.")
    keys.check_alone(table.files)
    every = [(str(file), table.reading.schema(file)) for part in table.files.values() for file in part]
    check_alike(every, [*table.features, conf.label], conf)
    check_times(every, keys)
    taken = shares(conf.split, table.files)
    files = {split: part for split, part in table.files.items() if split not in taken}
    pieces, labels, deciding = _scan(table, keys, files)
    reader = TableReader(table.reading, table.spec(labels), keys)
    splits = {
        split: StreamedTable(reader, own, row_filter, counts, reader.spec.row_bytes, conf.num_shuffle_rows)
        for split, (own, row_filter, counts) in _shares(pieces, deciding, keys, conf).items()
    }
    reader = _preprocessed(splits["train"], reader, conf)
    scan = _categories(splits["train"], reader, conf)
    categories = scan.categories()
    tell_of_names(categories, splits["train"].num_rows, conf)
    reader = replace(reader, spec=replace(reader.spec, categories=categories, texts=scan.texts()))
    for split in splits.values():
        split.reader, split.row_bytes = reader, reader.spec.row_bytes
    (mean, std), missing, num_missing, spec = _statistics(splits, reader, conf)
    tell_of_digits(conf.dtype, mean, std, spec.features, "dataset.dtype=float64")
    task = task_of(labels, conf)
    info = DatasetInfo(
        name=table.name,
        task=task,
        dtype=conf.dtype,
        categories=categories,
        missing=missing,
        num_missing=num_missing,
        target_dtype=labels.targets.dtype,
        merged_targets=labels.targets.merged,
        columns=spec.roles.names,
        input_shape=(len(spec.features),),
        num_classes=labels.num_classes,
        class_names=labels.class_names,
        feature_names=spec.features,
        num_rows={name: split.num_rows for name, split in splits.items()},
        fingerprint=files_fingerprint(file for part in files.values() for file in part),
        memory="stream",
        memory_reason=choice.reason,
        num_ranges=sum(isinstance(piece.key[2], ByteRange) for found in pieces.values() for piece in found),
        mean=mean,
        std=std,
    )
    return Dataset(info, splits, encoding_of(spec, task, conf.dtypes or {}))


class StreamedTable(StreamSplit):
    """Streamed rows of tables."""

    def units(self) -> list[list[int]]:
        """Return the ranges of each file together: until files were cut into ranges, statistics saw all of a file."""

        def unit(number: int) -> tuple[Any, ...]:
            where, _, key = self.pieces[number].key
            return (where,) if isinstance(key, ByteRange) else (where, number)

        return [list(numbers) for _, numbers in groupby(range(len(self.pieces)), unit)]


def _categories(train: StreamSplit, reader: TableReader, conf: LargeTableConf) -> CategoryScan:
    """Read the columns of categories of the train split once, for their names."""
    spec = reader.spec
    asked = None if conf.categorical is None else [name for name in conf.categorical if name in spec.features]
    scan = CategoryScan(spec.features, asked, conf.untyped)
    schemas = {where: reader.reading.schema(Path(where)) for where in {piece.key[0] for piece in train.pieces}}
    for piece in train.pieces:
        where = piece.key[0]
        names = scan.candidates(schemas[where])
        columns = (spec.inputs, spec.inputs) if spec.preprocessing else (names,)
        for table in _train_rows(train, reader, piece, *columns) if names else ():
            scan.add(spec.preprocessing.apply(table, where) if spec.preprocessing else table, where)
    return scan


def _preprocessed(train: StreamSplit, reader: TableReader, conf: LargeTableConf) -> TableReader:
    """Fit the preprocessors on rows of train, evenly spread: ``STATISTICS_ROWS``, or up to twice as many."""
    if not conf.preprocessors:
        return reader
    spec = reader.spec
    pieces = [train.pieces[index] for index in train.spread(STATISTICS_ROWS)]
    step = max(1, _num_rows(pieces) * train.num_rows // max(1, _num_rows(train.pieces)) // STATISTICS_ROWS)
    tables = [
        (piece.key[0], table.take(list(range(0, table.num_rows, step))))
        for piece in pieces
        for table in _train_rows(train, reader, piece, spec.columns, spec.inputs)
    ]
    preprocessing = fit(conf.preprocessors, tables, spec.inputs)
    return replace(reader, spec=replace(spec, features=preprocessing.features, preprocessing=preprocessing))


def _train_rows(
    train: StreamSplit, reader: TableReader, piece: Piece, columns: Sequence[str], widened: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """Yield the rows of a piece that belong to train, as they are."""
    where, first, key = piece.key
    row = piece.first_row
    for batch in reader.reading.batches(key, list(dict.fromkeys((*reader.keys.columns, *columns))), widened, first):
        deciding = reader.keys.decode(batch, where)
        yield batch.filter(train.row_filter.mask(row, batch.num_rows, deciding))
        row += batch.num_rows


def _scan(table: FileTable, keys: SplitKeys, files: Files) -> tuple[dict[str, list[Piece]], Labels, Columns]:
    """Read the label column once, and the columns that decide splits.

    Returns:
        The rows of each piece of all splits; the classes of ``train``; and what decides the split of its rows.
    """
    scan = label_scan(table.conf)
    deciding: dict[str, list[np.ndarray]] = {}

    def look(batch: pa.Table, where: str, row: int) -> None:
        scan.add(batch[table.conf.label], where, row)
        for name, values in keys.decode(batch, where, row).items():
            deciding.setdefault(name, []).append(values)

    def check(batch: pa.Table, where: str, row: int) -> None:
        labels.encode(batch[table.conf.label], where, row)

    pieces = {"train": _scanned(table, files["train"], keys.columns, look)}
    _check_rows({"train": _num_rows(pieces["train"])}, files)
    labels = scan.labels()
    for split in (one for one in files if one != "train"):
        with read_for(split):
            pieces[split] = _scanned(table, files[split], (), check)
    _check_rows({split: _num_rows(found) for split, found in pieces.items()}, files)
    return pieces, labels, {name: np.concatenate(parts) for name, parts in deciding.items()}


def _scanned(
    table: FileTable, files: Sequence[Path], more: Sequence[str], look: Callable[[pa.Table, str, int], object]
) -> list[Piece]:
    """Return the pieces of a split with their rows; ``look`` sees their labels and ``more``, and may refuse them."""
    pieces: list[Piece] = []
    columns = list(dict.fromkeys([*(name for name in more if name != table.conf.label), table.conf.label]))
    first = 0
    for file in files:
        row = 0
        for key in table.reading.pieces(file):
            num_rows = 0
            for batch in table.reading.batches(key, columns, (), row):
                look(batch, str(file), row + num_rows)
                num_rows += batch.num_rows
            pieces.append(Piece((str(file), row, key), first + row, num_rows))
            row += num_rows
        first += row
    return pieces


def _num_rows(pieces: Sequence[Piece]) -> int:
    return sum(piece.num_rows for piece in pieces)


def _shares(
    pieces: Mapping[str, Sequence[Piece]], deciding: Columns, keys: SplitKeys, conf: LargeTableConf
) -> dict[str, tuple[list[Piece], RowFilter, list[int]]]:
    """Return for each split the pieces that have rows of it, which of their rows it takes, and how many of each."""
    sizes = {split: _num_rows(found) for split, found in pieces.items()}
    whole = {split: RowFilter(conf.seed, num_rows=size, limit=num_wanted(size, conf)) for split, size in sizes.items()}
    if keys.way == "group":
        whole["train"] = whole["train"].of_groups(deciding[KEY])
    train = whole["train"]
    found = {split: (split, row_filter) for split, row_filter in whole.items()}
    times = deciding.get(TIME)
    if NAMED in deciding:
        named = {split: int((deciding[NAMED] == place).sum()) for place, split in enumerate(SPLITS)}
        keys.check_named(named)
        found = {split: ("train", replace(train, named=split)) for split, count in named.items() if count}
        train = replace(train, named="train")
        times = None if times is None else times[deciding[NAMED] == SPLITS.index("train")]
    taken = shares(conf.split, found)
    asked = {split: share for split, share in taken.items() if share}
    check_way(keys.way, asked, found)
    found = {split: one for split, one in found.items() if split not in taken}
    for split, (low, high) in borders(asked, times).items():
        found[split] = "train", replace(train, low=low, high=high)
    of = f"{train.num_rows} rows"
    counts = {split: row_filter.counts(pieces[origin], deciding) for split, (origin, row_filter) in found.items()}
    sums = {split: sum(one) for split, one in counts.items()}
    check_not_empty(sums, asked, of, "hash" if keys.way == "group" else keys.way)
    own = {
        split: [piece for piece, count in zip(pieces[origin], counts[split], strict=True) if count]
        for split, (origin, _) in found.items()
    }
    kept = {split: [count for count in counts[split] if count] for split in found}
    return {split: (own[split], found[split][1], kept[split]) for split in SPLITS if split in found}


def _statistics(
    splits: Mapping[str, StreamSplit], reader: TableReader, conf: LargeTableConf
) -> tuple[Statistics, tuple[str, ...], dict[str, int], TableSpec]:
    """Return mean and std for ``normalize``, which features have missing values, and how many of train do.

    Where ``on_missing`` says so, all splits fill those in from now on.
    """
    spec = reader.spec
    given = given_statistics(conf.normalize, len(spec.features))
    missing: tuple[str, ...] = ()
    num_missing: dict[str, int] = {}
    if given is None or conf.on_missing != "error":
        moments = splits["train"].moments(STATISTICS_ROWS)
        num_missing = moments.num_missing(spec.features)
        tell_of_empty(moments.mean, spec.features)
        given = given if given is not None else moments.statistics
        kept = [name for name in splits if name != "train"] if conf.on_missing == "keep" else []
        others = [splits[name].moments(STATISTICS_ROWS) for name in kept]
        found = {name for one in (moments, *others) for name in one.missing(spec.features)}
        missing = tuple(name for name in spec.features if name in found and name not in spec.categories)
        if conf.on_missing == "mean":
            spec = spec.filled(unscaled(moments.statistics[0], spec.features, spec.categories, float("nan")))
            missing = ()
    mean, std = (unscaled(one, spec.features, spec.categories, to) for one, to in zip(given, (0.0, 1.0), strict=True))
    spec = spec.decided(missing)  # rows that were not looked at must not lack what a network needs
    if spec is not reader.spec:
        for split in splits.values():
            split.reader = replace(reader, spec=spec)
    return (mean, std), missing, num_missing, spec
