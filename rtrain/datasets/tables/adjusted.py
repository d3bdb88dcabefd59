"""Tables as the config wants them: which values are missing (``na_values``), and types of columns (``dtypes``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.casts import TEXTS, cast_schema, cast_table
from rtrain.datasets.tables.categories import is_fraction, is_number, is_text
from rtrain.datasets.tables.spec import TableFormat


@dataclass(frozen=True)
class Adjustment:
    """What happens to each table that is read."""

    na_values: Sequence[str] = ()
    dtypes: Mapping[str, str] | None = None

    def __call__(self, table: pa.Table, where: str, first_row: int = 0) -> pa.Table:
        """Return the table, some of whose values are missing and whose columns are cast.

        Raises:
            DatasetError: A value can't be taken as its type; names ``where``, column and row.
        """
        return cast_table(without_na_values(table, self.na_values), self.dtypes or {}, where, first_row)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns and the types that they are cast to."""
        return cast_schema(schema, self.dtypes or {})

    def format(self, reading: TableFormat) -> TableFormat:
        """Return a format whose tables are adjusted; the same one if there is nothing to do."""
        texts = [name for name, dtype in (self.dtypes or {}).items() if dtype in TEXTS]
        return AdjustedFormat(reading, self, texts) if self.na_values or self.dtypes else reading


class Adjust(Protocol):
    """Changes each table that is read."""

    def __call__(self, table: pa.Table, where: str, first_row: int = 0) -> pa.Table:
        """Return the changed table; ``where`` is its file, for messages."""

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of changed tables, and their types."""


@dataclass(frozen=True)
class EmptyTexts:
    """Takes missing values of some columns as the empty text, which CSV files can't tell from them."""

    columns: Sequence[str]

    def __call__(self, table: pa.Table, where: str, first_row: int = 0) -> pa.Table:
        """Return the table with texts in these columns."""
        for name in set(self.columns) & set(table.column_names):
            texts = pc.fill_null(table[name].cast(pa.string()), "")
            table = table.set_column(table.column_names.index(name), name, texts)
        return table

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns as they are."""
        return schema


@dataclass(frozen=True)
class AdjustedFormat:
    """Reads tables by another format, and adjusts them."""

    reading: TableFormat
    adjust: Adjust
    texts: Sequence[str] = ()
    """Columns that become text, and may have any type before."""

    @property
    def endings(self) -> Sequence[str]:
        """How the files' names end."""
        return self.reading.endings

    def schema(self, file: Path) -> pa.Schema:
        """Return the columns of adjusted tables."""
        return self.adjust.schema(self.reading.schema(file))

    def read(self, file: Path, columns: Sequence[str]) -> pa.Table:
        """Return the whole file."""
        return self.adjust(self.reading.read(file, columns), str(file))

    def decoded_bytes(self, file: Path, num_columns: int) -> int:
        """Return about how large the rows are in memory."""
        return self.reading.decoded_bytes(file, num_columns)

    def pieces(self, file: Path) -> list[Any]:
        """Return the keys of the other format."""
        return self.reading.pieces(file)

    def batches(
        self, piece: Any, columns: Sequence[str], widened: Sequence[str] = (), first_row: int = 0
    ) -> Iterator[pa.Table]:
        """Yield the rows of a part, some at a time."""
        where = piece[0] if isinstance(piece, tuple) else piece
        for table in self.reading.batches(piece, columns, (*widened, *self.texts), first_row):
            yield self.adjust(table, where, first_row)
            first_row += table.num_rows


def without_na_values(table: pa.Table, na_values: Sequence[str]) -> pa.Table:
    """Return the table with nothing in place of these values, in all columns of text and of numbers.

    Numbers are compared by value, -999.0 and -999, and texts without the blanks around them.
    """
    for place, name in enumerate(table.column_names if na_values else ()):
        table = table.set_column(place, name, _without(table.column(place), na_values))
    return table


def _without(values: pa.ChunkedArray, na_values: Sequence[str]) -> pa.ChunkedArray:
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
