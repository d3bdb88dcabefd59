"""Numbers in files of text that floats would round: they are read once more, as they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.casts import WHOLE
from rtrain.errors import DatasetError

AS_WRITTEN = pa.large_string()
"""Of a column of numbers that no type of number can hold; no reader guesses it by itself."""
_DIGITS = r"^[+-]?\d+$"

Written = Callable[[str], Iterator[str | None]]
"""Returns the texts of the numbers in a column, row by row."""


def may_be_rounded(values: pa.ChunkedArray | pa.Array) -> bool:
    """Return whether a column was read as floats, some of which may have been whole numbers with more digits."""
    if not pa.types.is_floating(values.type):
        return False
    largest = pc.max(pc.abs(values)).as_py()
    return largest is not None and largest >= WHOLE


def _refuse_rounded_inside(
    name: str, values: pa.ChunkedArray, written: Sequence[Any], file: Path, first_row: int
) -> None:
    """Raise a DatasetError if a whole number inside of a nested column is another one than in the file."""
    for row, (value, exact) in enumerate(zip(values, written, strict=True), start=first_row + 1):
        for number in _rounded(exact, value.as_py()):
            raise DatasetError(
                f"{file}: row {row} has {number} inside '{name}', which would be rounded: it is read as float64.",
                "Write such numbers as text, or leave the column out: 'dataset.ids=[...]' names those to keep.",
            )


def _has_large_float_inside(values: pa.ChunkedArray) -> bool:
    return pa.types.is_nested(values.type) and any(map(_has_large_float, values.chunks))


def _has_large_float(values: pa.Array) -> bool:
    if pa.types.is_struct(values.type):
        return any(map(_has_large_float, values.flatten()))
    if pa.types.is_nested(values.type):
        return _has_large_float(values.flatten())
    return may_be_rounded(values)


def _rounded(exact: Any, value: Any) -> Iterator[int]:
    """Yield the whole numbers in ``exact`` that are other ones in ``value``."""
    if isinstance(exact, dict) and isinstance(value, dict):
        yield from (number for name, one in exact.items() for number in _rounded(one, value.get(name)))
    elif isinstance(exact, list) and isinstance(value, list):
        yield from (number for pair in zip(exact, value, strict=False) for number in _rounded(*pair))
    elif type(exact) is int and isinstance(value, float) and exact != value:
        yield exact


def with_digits(table: pa.Table, columns: Iterable[str], written: Written) -> pa.Table:
    """Return the table with all digits of the numbers in these columns.

    Where floats are too short, whole numbers are uint64 or decimals; a column that has fractions, too, is text.
    """
    for place, name in enumerate(table.column_names):
        if name in columns and may_be_rounded(table.column(place)):
            exact = _exact(pa.array(written(name), AS_WRITTEN))
            table = table if exact is None else table.set_column(place, name, exact)
    return table


@dataclass
class StreamedDigits:
    """Keeps all digits of the numbers in some columns of a file whose types were guessed from its beginning."""

    columns: Sequence[str]
    as_texts: Sequence[str]
    """Those of them that are read as floats, and are text."""
    free: Sequence[str]
    """Columns whose type may be another one in each table."""
    written: Written
    file: Path
    first_row: int
    """Rows of the file before the first table, for messages."""
    nested: Callable[[str], Iterator[Any]] | None = None
    """Returns the values of a nested column, row by row, as Python reads them."""
    _begin: int = 0
    _again: dict[str, _SomeRows] = field(default_factory=dict)

    def checked(self, table: pa.Table) -> pa.Table:
        """Return the next table of the file.

        Raises:
            DatasetError: A whole number is rounded; names the row.
        """
        for name in self.columns:
            place = table.column_names.index(name)
            values = table.column(place)
            if self.nested is not None and _has_large_float_inside(values):
                exact = self._rows(name, self.nested, table.num_rows)
                _refuse_rounded_inside(name, values, exact, self.file, self.first_row + self._begin)
            if name in self.as_texts or may_be_rounded(values):
                found = self._read(name, table.num_rows)
                table = table if found is None else table.set_column(place, name, found)
        self._begin += table.num_rows
        return table

    def _rows(self, name: str, read: Callable[[str], Iterator[Any]], num_rows: int) -> list[Any]:
        """Return the rows of the next table in a column that is read once more."""
        if name not in self._again:
            self._again[name] = _SomeRows(read(name))
        return self._again[name].rows(self._begin, num_rows)

    def _read(self, name: str, num_rows: int) -> pa.Array | None:
        """Return a column of the next table that has all digits; None where floats have them."""
        texts = self._rows(name, self.written, num_rows)
        if name in self.as_texts:
            return pa.array(texts, AS_WRITTEN)
        if name in self.free:
            return _exact(pa.array(texts, AS_WRITTEN))
        self._check(name, texts)
        return None

    def _check(self, name: str, texts: Sequence[str | None]) -> None:
        rounded = _first_rounded(texts)
        if rounded is not None:
            row = self.first_row + self._begin + rounded[0] + 1
            raise DatasetError(
                f"{self.file}: row {row} has {name}={rounded[1]}, which a float64 can't hold, and the column is "
                "read as floats.",
                f"Keep them as text: 'dataset.dtypes={{{name}: string}}', or round them: "
                f"'dataset.dtypes={{{name}: float64}}'",
            )


class _SomeRows:
    """The values of a column, of which some rows are needed, in their order."""

    def __init__(self, values: Iterator[Any]) -> None:
        self._values, self._place = values, 0

    def rows(self, begin: int, num_rows: int) -> list[Any]:
        """Return the values of some rows."""
        skipped, self._place = begin - self._place, begin + num_rows
        return list(islice(self._values, skipped, skipped + num_rows))


def _exact(texts: pa.Array) -> pa.Array | None:
    """Return numbers as a type that holds all their digits; None if floats do, next to fractions."""
    if not pc.all(pc.match_substring_regex(texts, _DIGITS)).as_py():
        return None if _first_rounded(texts.to_pylist()) is None else texts
    for kind in (pa.uint64(), pa.decimal128(38, 0)):
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return texts


def _first_rounded(texts: Sequence[str | None]) -> tuple[int, str] | None:
    """Return the first whole number that is another one as a float, with its row."""
    found = ((row, text) for row, text in enumerate(texts) if text is not None and text.lstrip("+-").isdecimal())
    return next(((row, text) for row, text in found if _is_rounded(text)), None)


def _is_rounded(text: str) -> bool:
    number = float(text)
    return number in (float("inf"), float("-inf")) or int(text) != int(number)
