"""The list of runs: a line for each, with as many columns as the terminal is wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from rtrain.config.did_you_mean import to_try
from rtrain.displays.history.texts import MISSING, cut, text_of
from rtrain.errors import ConfigError
from rtrain.history.query.columns import differing, titles
from rtrain.history.query.fields import Fields
from rtrain.history.rows import Row
from rtrain.runs.status import STYLES

GAP = "  "
MOST_CHARACTERS = 32
"""Of a cell, unless its column was asked for."""
NUM_BEFORE = 2
"""Columns of what differs that are shown before the trainer and the time that a run took."""


@dataclass(frozen=True)
class Column:
    """One column: what stands above it, and its cells."""

    title: str
    cells: Sequence[str]
    key: str = ""
    """The last part of its field's name: ``seed`` of ``config.run.seed``, too."""
    is_numeric: bool = False
    """Whether it is aligned to the right."""

    @property
    def width(self) -> int:
        """Characters of its widest cell."""
        return max(map(len, (self.title, *self.cells)))


def table_lines(rows: Sequence[Row], columns: str | None, width: int, among: Sequence[Row]) -> list[Text]:
    """Return the table of some runs, a heading first.

    Args:
        rows: At least one, in their order.
        columns: Names of fields with commas between them; those after a leading ``+`` are added to the usual ones.
        width: Characters of a line; columns that were not asked for are left out where it is too narrow.
        among: All rows that they were chosen from: a column that only others of them have is empty.

    Raises:
        ConfigError: One of the columns does not exist.
    """
    words = [one.strip() for one in (columns or "").split(",") if one.strip()]
    are_added = not words or words[0].startswith("+")
    asked = _asked(rows, Fields(among, rows), [one.lstrip("+") if are_added else one for one in words])
    return _lines(_fitting(_with_asked([*_usual(rows), *_varied(rows)], asked), width) if are_added else asked)


def _asked(rows: Sequence[Row], fields: Fields, words: Sequence[str]) -> list[Column]:
    if late := [one for one in words if one.startswith("+")]:
        raise ConfigError(f"--columns: '{late[0]}' adds to the default columns: put it first.", to_try("-c +id,seed"))
    names = [fields.find(one) for one in words]
    return [_column(rows, name, title, 1 << 16) for title, name in zip(titles(names), names, strict=True)]


def _with_asked(usual: Sequence[tuple[int, Column]], asked: Sequence[Column]) -> list[tuple[int, Column]]:
    """Return columns with the requested ones. Those are never left out, and one that exists already keeps its place."""
    found, left = list[tuple[int, Column]](), list(asked)
    for rank, column in usual:
        same = next((one for one in left if one.key == column.key and _cut_cells(one) == column.cells), None)
        if same is not None:
            left.remove(same)
        found.append((rank, column) if same is None else (0, replace(same, title=column.title)))
    return [*found, *((0, one) for one in left)]


def _cut_cells(column: Column) -> list[str]:
    return [cut(one, MOST_CHARACTERS) for one in column.cells]


def _usual(rows: Sequence[Row]) -> list[tuple[int, Column]]:
    """Return the columns that every list has, each with its rank: those with a higher one give way first."""
    names = [("id", 0), ("name", 0), ("status", 0), ("age", 1)]
    found = [(rank, _column(rows, name, name)) for name, rank in names]
    trainers = [_trainer(row) for row in rows]
    found.insert(2, (2 if len(set(trainers)) > 1 else 4, Column("trainer", trainers, "trainer")))
    found.append((5, _column(rows, "seconds", "took")))
    found.append((0, _best_column(rows)))
    if any(row.get("tags") for row in rows):
        found.append((2, _column(rows, "tags", "tags")))
    return found


def _trainer(row: Row) -> str:
    """Return the trainer of a run; of a sweep, the number of its trials."""
    return text_of("trainer", row.get("trainer")) if row.kind != "sweep" else f"{row.get('trials') or 'no'} trials"


def _best_column(rows: Sequence[Row]) -> Column:
    """Return the best values; where all are of one metric, that stands above them."""
    monitors = {row.get("monitor") for row in rows if row.get("best") is not None}
    if len(monitors) == 1:
        return _column(rows, "best", str(next(iter(monitors))))
    cells = [
        MISSING if row.get("best") is None else f"{row.get('monitor')} {text_of('best', row.get('best'))}"
        for row in rows
    ]
    return Column("best", [cut(one, MOST_CHARACTERS) for one in cells], "best")


def _varied(rows: Sequence[Row]) -> list[tuple[int, Column]]:
    names = differing(rows)
    return [
        (3 if rank < NUM_BEFORE else 6 + rank, _column(rows, name, title))
        for rank, (title, name) in enumerate(zip(titles(names), names, strict=True))
    ]


def _column(rows: Sequence[Row], name: str, title: str, most: int = MOST_CHARACTERS) -> Column:
    values = [row.get(name) for row in rows]
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in values if one is not None]
    cells = [cut(text_of(name, one), most) for one in values]
    return Column(title, cells, name.rpartition(".")[2], any(numbers) and all(numbers))


def _fitting(columns: Sequence[tuple[int, Column]], width: int) -> list[Column]:
    """Return the columns that fit, in their order; of those that don't, the ones of the highest rank are left out."""
    left, chosen = width + len(GAP), set[int]()
    for at in sorted(range(len(columns)), key=lambda one: columns[one][0]):
        rank, column = columns[at]
        if rank == 0 or column.width + len(GAP) <= left:
            chosen.add(at)
            left -= column.width + len(GAP)
    return [column for at, (_, column) in enumerate(columns) if at in chosen]


def _lines(columns: Sequence[Column]) -> list[Text]:
    heading = [Text(_aligned(one.title, one), style="bold") for one in columns]
    rows = zip(*(one.cells for one in columns), strict=True)
    lines = [
        [Text(_aligned(cell, one), _style(cell, one)) for cell, one in zip(row, columns, strict=True)] for row in rows
    ]
    return [_joined(line) for line in [heading, *lines]]


def _joined(cells: Sequence[Text]) -> Text:
    line = Text(GAP).join(cells)
    line.rstrip()
    return line


def _aligned(text: str, column: Column) -> str:
    return text.rjust(column.width) if column.is_numeric else text.ljust(column.width)


def _style(cell: str, column: Column) -> Any:
    return STYLES.get(cell, "") if column.title == "status" else ""
