"""Reads Arrow files in the streaming format, as Hugging Face data sets have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rtrain.datasets.tables.casts import without_views
from rtrain.errors import DatasetError

PIECE_ROWS = 65_536
"""Rows of a piece, at least, but for the last one of a file."""


@dataclass(frozen=True)
class ArrowFormat:
    """Reads Arrow files; a piece is some record batches that follow one another: file, where they begin, how many.

    A file has no index: its batches are looked for once, and a piece is read without what comes before it.
    """

    endings: Sequence[str] = (".arrow",)

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns and their types."""
        with _opened(file) as (_, schema):
            return schema

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""
        tables = [table for piece in self.pieces(file) for table in self.batches(piece, columns)]
        return pa.concat_tables([self.schema(file).empty_table().select(list(columns)), *tables])

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return rows times columns of four bytes."""
        num_rows: int = sum(batch.num_rows for _, batch in _batches(file))
        return num_rows * (4 * num_columns + 4)

    def pieces(self, file: Path) -> list[Any]:
        """Return file, place of the first batch, and number of batches of each piece."""
        found, num_rows = list[Any](), 0
        for place, batch in _batches(file):
            if not found or num_rows >= PIECE_ROWS:
                found.append((str(file), place, 0))
                num_rows = 0
            found[-1] = (*found[-1][:2], found[-1][2] + 1)
            num_rows += batch.num_rows
        return found

    def batches(
        self, piece: Any, columns: Sequence[str], widened: Sequence[str] = (), first_row: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the rows of a piece together."""
        file, place, num_batches = piece
        with _opened(Path(file)) as (source, schema):
            source.seek(place)
            batches = [pa.ipc.read_record_batch(pa.ipc.read_message(source), schema) for _ in range(num_batches)]
        yield without_views(pa.Table.from_batches(batches, schema).select(list(columns)).combine_chunks())


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Any, pa.Schema]]:
    """Map a file into memory; yield it, at its first batch, and its schema."""
    try:
        with pa.memory_map(str(file)) as source:
            yield source, pa.ipc.read_schema(source)
    except (OSError, EOFError, pa.ArrowException) as error:
        hint = "Save the data set again. Each machine needs the file, under this name."
        raise DatasetError(f"{file}: {error}", hint) from error


def _batches(file: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the record batches of a file, and where each begins."""
    with _opened(file) as (source, schema):
        while True:
            place = source.tell()
            try:
                message = pa.ipc.read_message(source)
            except EOFError:
                return
            yield place, pa.ipc.read_record_batch(message, schema)
