"""From the files of a table to a dataset, in memory or streamed: what the csv and parquet sources share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.datasets.base import Columns, Dataset, DatasetInfo
from rtrain.datasets.conf import TableConf
from rtrain.datasets.files import files_by_split, files_fingerprint
from rtrain.datasets.labels import Labels, LabelScan
from rtrain.datasets.memory import MemoryChoice, choose_memory
from rtrain.datasets.moments import Moments, given_statistics
from rtrain.datasets.resident import Content, resident_dataset
from rtrain.datasets.splits import check_not_empty, shares, split_parts
from rtrain.datasets.stream import Piece, Share, StreamSplit
from rtrain.datasets.table_rows import describe_spec
from rtrain.datasets.tables import TableFormat, TableSpec, check_columns, choose_features
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow as pa

STATISTICS_ROWS = 1_000_000
"""Rows of a streamed train split that ``normalize: true`` looks at, at least, if there are so many."""

Files = Mapping[str, Sequence[Path]]


def load_table(name: str, reading: TableFormat, conf: TableConf, files: Files | None = None) -> Dataset:
    """Return the dataset that ``conf`` describes, read by ``reading``; of ``files`` in place of all at ``conf.path``.

    Raises:
        DatasetError: Something is missing, unreadable or unusable; names the file, row or column.
    """
    files = files_by_split(conf.path, reading.endings) if files is None else files
    features = _checked_features(files, reading, conf)
    size = sum(reading.decoded_bytes(file, len(features) + 1) for part in files.values() for file in part)
    choice = choose_memory(conf.memory, size)
    load = _load_resident if choice.memory == "resident" else _load_stream
    return load(_Table(name, reading, conf, files, features), choice)


@dataclass(frozen=True)
class _Table:
    """A table whose columns are known and whose rows are not."""

    name: str
    reading: TableFormat
    conf: TableConf
    files: Files
    features: tuple[str, ...]

    def content(self, labels: Labels, choice: MemoryChoice) -> Content:
        return Content(
            name=self.name,
            task=labels.task,
            class_names=labels.class_names,
            feature_names=self.features,
            memory_reason=choice.reason,
        )

    def spec(self, labels: Labels) -> TableSpec:
        return TableSpec(features=self.features, labels=labels, on_missing=self.conf.on_missing)


def _checked_features(files: Files, reading: TableFormat, conf: TableConf) -> tuple[str, ...]:
    """Return the feature columns, which all files have to have."""
    first = files["train"][0]
    features = choose_features(conf, reading.schema(first), str(first))
    for part in files.values():
        for file in part:
            if file != first:
                schema = reading.schema(file)
                check_columns([conf.label], schema, str(file), "label")
                check_columns(features, schema, str(file), "features")
    return features


def _load_resident(table: _Table, choice: MemoryChoice) -> Dataset:
    columns = (*table.features, table.conf.label)
    tables = {
        split: [(str(file), table.reading.read(file, columns)) for file in part] for split, part in table.files.items()
    }
    scan = LabelScan(table.conf.label, table.conf.task)
    for where, read in tables["train"]:
        scan.add(read[table.conf.label], where, 0)
    _check_rows({split: sum(read.num_rows for _, read in part) for split, part in tables.items()}, table.files)
    labels = scan.labels()
    spec = table.spec(labels)
    parts = {split: _decoded(spec, part) for split, part in tables.items()}
    splits = split_parts(parts, table.conf, stratify=labels.task == "classification")
    if spec.on_missing == "mean":
        moments = Moments()
        moments.add(splits["train"]["x"])
        spec = spec.filled(moments.mean)
        splits = {split: {**part, "x": spec.fill_missing(part["x"])} for split, part in splits.items()}
    dataset = resident_dataset(splits, table.content(labels, choice), table.conf)
    return replace(dataset, encoding=describe_spec(spec))


def _decoded(spec: TableSpec, tables: Sequence[tuple[str, pa.Table]]) -> Columns:
    import numpy as np

    parts = [spec.decode(read, where) for where, read in tables]
    return parts[0] if len(parts) == 1 else {key: np.concatenate([part[key] for part in parts]) for key in ("x", "y")}


def _check_rows(num_rows: Mapping[str, int], files: Files) -> None:
    for split, count in num_rows.items():
        if not count:
            raise DatasetError(f"{files[split][0]}: there are no rows for the split '{split}'.", "Check dataset.path.")


@dataclass(frozen=True)
class TableReader:
    """Reads the pieces of a streamed table; a key is (file, its rows before the piece, piece of the format)."""

    reading: TableFormat
    spec: TableSpec

    def read(self, key: Any) -> Iterator[Columns]:
        """Yield the decoded rows of a piece."""
        where, row, piece = key
        for batch in self.reading.batches(piece, self.spec.columns):
            yield self.spec.decode(batch, where, row)
            row += batch.num_rows


def _load_stream(table: _Table, choice: MemoryChoice) -> Dataset:
    conf = table.conf
    taken = shares(conf.split, table.files)
    files = {split: part for split, part in table.files.items() if split not in taken}
    pieces, labels = _scan(table, files)
    reader = TableReader(table.reading, table.spec(labels))
    splits = {
        split: StreamSplit(
            reader, pieces[origin], share, share.count(pieces[origin]), reader.spec.row_bytes, conf.num_shuffle_rows
        )
        for split, (origin, share) in _shares(pieces, taken, conf).items()
    }
    check_not_empty({name: split.num_rows for name, split in splits.items()}, taken, _num_rows(pieces["train"]))
    mean, std = _statistics(splits, reader, conf)
    info = DatasetInfo(
        name=table.name,
        task=labels.task,
        input_shape=(len(table.features),),
        num_classes=len(labels.classes) if labels.classes is not None else None,
        class_names=labels.class_names,
        feature_names=table.features,
        num_rows={name: split.num_rows for name, split in splits.items()},
        fingerprint=files_fingerprint(file for part in files.values() for file in part),
        memory="stream",
        memory_reason=choice.reason,
        mean=mean,
        std=std,
    )
    return Dataset(info, splits, describe_spec(_spec_of(splits["train"])))


def _spec_of(split: StreamSplit) -> TableSpec:
    """Return how the rows are read, the means that fill missing values included."""
    assert isinstance(split.reader, TableReader)
    return split.reader.spec


def _scan(table: _Table, files: Files) -> tuple[dict[str, list[Piece]], Labels]:
    """Read the label column once: the classes of ``train``, and the rows of each piece of all splits."""
    scan = LabelScan(table.conf.label, table.conf.task)
    pieces = {"train": _scanned(table, files["train"], scan.add)}
    _check_rows({"train": _num_rows(pieces["train"])}, files)
    labels = scan.labels()
    pieces |= {split: _scanned(table, part, labels.encode) for split, part in files.items() if split != "train"}
    _check_rows({split: _num_rows(found) for split, found in pieces.items()}, files)
    return pieces, labels


def _scanned(table: _Table, files: Sequence[Path], look: Callable[[pa.Array, str, int], object]) -> list[Piece]:
    """Return the pieces of a split with their rows; ``look`` sees their labels, and may refuse them."""
    pieces: list[Piece] = []
    row = 0
    for file in files:
        start = row
        for key in table.reading.pieces(file):
            first = row
            for batch in table.reading.batches(key, [table.conf.label]):
                look(batch[table.conf.label], str(file), row - start)
                row += batch.num_rows
            pieces.append(Piece((str(file), first - start, key), first, row - first))
    return pieces


def _num_rows(pieces: Sequence[Piece]) -> int:
    return sum(piece.num_rows for piece in pieces)


def _shares(
    pieces: Mapping[str, Sequence[Piece]], taken: Mapping[str, float], conf: TableConf
) -> dict[str, tuple[str, Share]]:
    """Return for each split the pieces that it reads, by the split they came from, and which of their rows it takes."""
    whole = {split: Share(conf.seed, num_rows=_num_rows(found), limit=conf.limit) for split, found in pieces.items()}
    found = {}
    low = 0.0
    for split, share in taken.items():
        if share:
            found[split] = "train", replace(whole["train"], low=low, high=low + share)
            low += share
    found["train"] = "train", replace(whole["train"], low=low)
    found |= {split: (split, share) for split, share in whole.items() if split != "train"}
    return {split: found[split] for split in ("train", "val", "test") if split in found}


def _statistics(
    splits: Mapping[str, StreamSplit], reader: TableReader, conf: TableConf
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and std for ``normalize``, and let all splits fill missing values where ``on_missing`` says so."""
    given = given_statistics(conf.normalize, len(reader.spec.features))
    if given is not None and conf.on_missing != "mean":
        return given
    moments = splits["train"].moments(STATISTICS_ROWS)
    if conf.on_missing == "mean":
        filled = replace(reader, spec=reader.spec.filled(moments.mean))
        for split in splits.values():
            split.reader = filled
    return given if given is not None else (moments.mean, moments.std)
