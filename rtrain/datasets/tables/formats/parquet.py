"""Reads Parquet files."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from rtrain.datasets.tables.casts import without_views
from rtrain.errors import DatasetError

log = logging.getLogger(__name__)

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class ParquetFormat:
    """Reads Parquet files with pyarrow; a piece is a row group."""

    endings: Sequence[str] = (".parquet", ".pq")

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns and their types."""
        with _opened(file) as parquet:
            return parquet.schema_arrow

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""
        with _opened(file) as parquet:
            try:
                return parquet.read(list(columns))
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(file, error) from error

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return rows times columns of four bytes, from the file's own figures."""
        with _opened(file) as parquet:
            return int(parquet.metadata.num_rows) * (4 * num_columns + 4)

    def pieces(self, file: Path) -> list[Any]:
        """Return file and number of each row group."""
        with _opened(file) as parquet:
            return [(str(file), group) for group in range(parquet.num_row_groups)]

    def batches(
        self, piece: Any, columns: Sequence[str], widened: Sequence[str] = (), first_row: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the rows of a row group, some ten thousand at a time."""
        file, group = piece
        with _opened(Path(file)) as parquet:
            try:
                for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=list(columns)):
                    yield without_views(pa.Table.from_batches([batch]))
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(Path(file), error) from error


def _opened(file: Path) -> Any:
    try:
        return parquet.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> DatasetError:
    return DatasetError(f"{file}: {error}", "Check that it is a complete Parquet file.")
