"""New rows of tables, prepared as a model's training rows were: for predictions and evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.datasets.base import RawChunk
from rtrain.datasets.conf import TableConf
from rtrain.datasets.files import files_by_split
from rtrain.datasets.labels import Labels
from rtrain.datasets.tables import TableFormat, TableSpec, check_columns

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def describe_spec(spec: TableSpec) -> dict[str, Any]:
    """Return what ``spec_of`` makes the spec of again, as plain data."""
    classes = spec.labels.classes
    return {
        "features": list(spec.features),
        "label": spec.labels.column,
        "classes": None if classes is None else list(classes),
        "on_missing": spec.on_missing,
        "fill": list(spec.fill),
    }


def spec_of(encoding: Mapping[str, Any]) -> TableSpec:
    """Return the spec that ``describe_spec`` told of."""
    classes = encoding["classes"]
    return TableSpec(
        features=tuple(encoding["features"]),
        labels=Labels(encoding["label"], None if classes is None else tuple(classes)),
        on_missing=encoding["on_missing"],
        fill=tuple(encoding["fill"]),
    )


def open_table_rows(reading: TableFormat, conf: TableConf, encoding: Mapping[str, Any]) -> TableRows:
    """Return a reader of all rows at ``conf.path``.

    Raises:
        DatasetError: A feature of training is no column of one of the files.
    """
    spec = spec_of(encoding)
    pieces = []
    for part in files_by_split(conf.path, reading.endings).values():
        for file in part:
            check_columns(spec.features, reading.schema(file), str(file), "features")
            pieces += [(str(file), key) for key in reading.pieces(file)]
    return TableRows(pieces, reading, spec)


@dataclass(frozen=True)
class TableRows:
    """Reads tables piece by piece; every column that is no feature is kept for the output."""

    pieces: Sequence[Any]
    reading: TableFormat
    spec: TableSpec

    def read(self, piece: Any) -> Iterator[RawChunk]:
        """Yield the rows of a piece, some at a time."""
        file, key = piece
        names = self.reading.schema(Path(file)).names
        others = [name for name in names if name not in self.spec.features]
        row = 0
        for batch in self.reading.batches(key, [*self.spec.features, *others]):
            x = self.spec.decode_features(batch, file, row)
            yield RawChunk(x, self._labels(batch, file, row), {name: batch[name] for name in others})
            row += batch.num_rows

    def _labels(self, batch: pa.Table, file: str, row: int) -> np.ndarray | None:
        """Return the coded labels; None where the file has none, or not in every row."""
        column = self.spec.labels.column
        if column not in batch.column_names or batch[column].null_count:
            return None
        return self.spec.labels.encode(batch[column], file, row)
