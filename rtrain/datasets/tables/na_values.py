"""Texts and numbers that stand for missing values: ``dataset.na_values``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtrain.datasets.tables.categories import is_fraction, is_number, is_text
from rtrain.datasets.tables.spec import TableFormat

if TYPE_CHECKING:
    import pyarrow as pa


def without_na_values(table: pa.Table, na_values: Sequence[str]) -> pa.Table:
    """Return the table with nothing in place of these values, in all columns of text and of numbers.

    Numbers are compared by value, -999.0 and -999, and texts without the blanks around them.
    """
    for place, name in enumerate(table.column_names if na_values else ()):
        table = table.set_column(place, name, _without(table.column(place), na_values))
    return table


def _without(values: pa.ChunkedArray, na_values: Sequence[str]) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_dictionary(kind):
        return _without(values.cast(kind.value_type), na_values).dictionary_encode()
    if is_text(kind):
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
        return pc.if_else(pc.is_in(texts, pa.array(na_values, pa.string())), None, values)
    if pa.types.is_integer(kind) or is_fraction(kind):
        numbers = pa.array([float(one) for one in na_values if is_number(one)], pa.float64())
        return pc.if_else(pc.is_in(values.cast(pa.float64(), safe=False), numbers), None, values)
    return values


@dataclass(frozen=True)
class NaFormat:
    """Reads tables by another format, and takes some of their values as missing."""

    reading: TableFormat
    na_values: Sequence[str]

    @property
    def endings(self) -> Sequence[str]:
        """How the files' names end."""
        return self.reading.endings

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns and their types."""
        return self.reading.schema(file)

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""
        return without_na_values(self.reading.read(file, columns), self.na_values)

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return about how large the rows are in memory."""
        return self.reading.decoded_bytes(file, num_columns)

    def pieces(self, file: Path) -> list[tuple[Any, int]]:
        """Return the keys of the other format."""
        return self.reading.pieces(file)

    def batches(self, piece: Any, columns: Sequence[str], widened: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Yield the rows of a part, some at a time."""
        for table in self.reading.batches(piece, columns, widened):
            yield without_na_values(table, self.na_values)
