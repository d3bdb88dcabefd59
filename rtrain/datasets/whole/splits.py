"""Tables with their own columns, in memory or read from their files in each pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rtrain.datasets.base import Batch, Columns, EpochPlan, Split
from rtrain.datasets.tables.spec import TableFormat


class TableSplit(Split):
    """Rows with any columns, which only a train loop of the user's reads: there is no ``x`` and no ``y``."""

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows in the order of the data, some at a time."""

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Refuse: declared training never gets such rows."""
        raise NotImplementedError

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield all rows as arrays by column; only a single worker asks, others read with Ray Data."""
        assert world_size == 1
        yield from map(arrays_of, self.tables())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as plain Python values."""
        for table in self.tables():
            for batch in table.to_batches(max_chunksize=1024):
                yield from batch.to_pylist()


class HeldTable(TableSplit):
    """A table in memory."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.num_rows = table.num_rows

    def tables(self) -> Iterator[pa.Table]:
        """Yield the table."""
        yield self.table


@dataclass(frozen=True)
class FilePiece:
    """A part of a file that is read by itself."""

    key: Any
    """Of the format."""
    first_row: int
    """Rows of the file before it."""


@dataclass
class FileTable(TableSplit):
    """A table that is read piece by piece."""

    reading: TableFormat
    columns: Sequence[str]
    pieces: Sequence[FilePiece]
    num_rows: int

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of the pieces."""
        for piece in self.pieces:
            yield from self.read(piece)

    def read(self, piece: FilePiece) -> Iterator[pa.Table]:
        """Yield the rows of a piece."""
        yield from self.reading.batches(piece.key, self.columns, (), piece.first_row)


def arrays_of(table: pa.Table) -> Columns:
    """Return (rows,) of each column as Ray Data gives it to a loop: its numbers, or objects (lists, texts)."""
    from ray.data.block import BlockAccessor

    found: Columns = BlockAccessor.for_block(table).to_batch_format("numpy")
    return found
