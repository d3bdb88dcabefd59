"""Rows of tables to predict: what training remembers of its columns, and new files read by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.datasets.base import RawChunk
from rtrain.datasets.conf import ColumnsConf, TableConf
from rtrain.datasets.files import files_by_split
from rtrain.datasets.labels import Labels
from rtrain.datasets.tables import TableFormat, TableSpec, check_columns

if TYPE_CHECKING:
    import pyarrow as pa


def encoding_of(spec: TableSpec, task: str) -> dict[str, Any]:
    """Return how the columns of a table became rows, as plain data."""
    return {
        "task": task,
        "label": spec.labels.column,
        "classes": None if spec.labels.classes is None else list(spec.labels.classes),
        "features": list(spec.features),
        "on_missing": spec.on_missing,
        "fill": [None if value != value else value for value in spec.fill],
        "dtype": spec.dtype,
        "categories": {name: list(names) for name, names in spec.categories.items()},
        "roles": asdict(spec.roles),
    }


def spec_of(encoding: Mapping[str, Any]) -> TableSpec:
    """Return how new rows are read: as in training, without weights and groups."""
    classes = encoding["classes"]
    return TableSpec(
        features=tuple(encoding["features"]),
        labels=Labels(encoding["label"], None if classes is None else tuple(classes)),
        on_missing=encoding["on_missing"],
        fill=tuple(float("nan") if value is None else value for value in encoding["fill"]),
        dtype=encoding["dtype"],
        categories={name: tuple(names) for name, names in encoding["categories"].items()},
    )


def open_table_rows(reading: TableFormat, conf: TableConf, encoding: Mapping[str, Any]) -> TableRows:
    """Open the files at ``conf.path``, of all splits, one after the other.

    Raises:
        DatasetError: A file is missing, or lacks a feature or an id; names the one that was probably meant.
    """
    spec = spec_of(encoding)
    pieces = []
    for part in files_by_split(conf.path, reading.endings).values():
        for file in part:
            check_row_columns(reading.schema(file), spec, conf.ids, str(file))
            pieces += [(str(file), key) for key in reading.pieces(file)]
    return TableRows(pieces, reading, spec, tuple(conf.ids))


def check_row_columns(schema: pa.Schema, spec: TableSpec, ids: Sequence[str], where: str) -> None:
    """Raise a DatasetError if a table has not the columns that a prediction needs; the label is not among them."""
    check_columns(spec.features, schema, where, "features")
    check_columns(ids, schema, where, "ids")


@dataclass(frozen=True)
class TableRows:
    """Reads tables piece by piece; ``ids`` are kept for the output, or every column that is no feature."""

    pieces: Sequence[Any]
    reading: TableFormat
    spec: TableSpec
    ids: tuple[str, ...]

    def read(self, piece: Any) -> Iterator[RawChunk]:
        """Yield the rows of a piece; rows in messages are counted from the beginning of the piece."""
        file, key = piece
        names = self.reading.schema(Path(file)).names
        label = [self.spec.labels.column] if self.spec.labels.column in names else []
        kept = _kept_names(names, self.spec, self.ids)
        columns = list(dict.fromkeys([*self.spec.features, *label, *kept]))
        row = 0
        for table in self.reading.batches(key, columns):
            yield raw_chunk(table, self.spec, kept, file, row)
            row += table.num_rows


@dataclass(frozen=True)
class ArrowRows:
    """Rows of Arrow tables in memory; a piece is the number of a table."""

    tables: tuple[pa.Table, ...]
    spec: TableSpec
    ids: tuple[str, ...]
    where: str

    @property
    def pieces(self) -> Sequence[int]:
        """Return the numbers of the tables."""
        return range(len(self.tables))

    def read(self, piece: int) -> Iterator[RawChunk]:
        """Yield the rows of a table at once."""
        table = self.tables[piece]
        yield raw_chunk(table, self.spec, _kept_names(table.column_names, self.spec, self.ids), self.where, 0)


def open_arrow_rows(
    tables: Sequence[pa.Table], conf: ColumnsConf, encoding: Mapping[str, Any], where: str
) -> ArrowRows:
    """Open Arrow tables to predict their rows.

    Raises:
        DatasetError: One lacks a feature or an id.
    """
    spec = spec_of(encoding)
    for table in tables:
        check_row_columns(table.schema, spec, conf.ids, where)
    return ArrowRows(tuple(tables), spec, tuple(conf.ids), where)


def raw_chunk(table: pa.Table, spec: TableSpec, kept: Sequence[str], where: str, row: int) -> RawChunk:
    """Return a table as rows to predict; without ``y`` if it has no label, or not in every row."""
    label = spec.labels.column
    labelled = label in table.column_names and not table[label].null_count
    y = spec.labels.encode(table[label], where, row) if labelled else None
    return RawChunk(spec.decode_features(table, where, row), y, {name: table[name] for name in kept})


def _kept_names(names: Sequence[str], spec: TableSpec, ids: Sequence[str]) -> list[str]:
    return list(ids) or [name for name in names if name not in spec.features]
