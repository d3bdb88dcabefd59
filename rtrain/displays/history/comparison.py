"""Runs next to each other: what differs, what came of them, and their curves over each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from rich.text import Text

from rtrain.config.files.locations import shown
from rtrain.displays.history.curves import chart, mark_style
from rtrain.displays.history.texts import cut, text_of
from rtrain.history.comparison import Comparison, Facts, common_metrics
from rtrain.history.rows import Row
from rtrain.history.series import read_series
from rtrain.runs.status import STYLES
from rtrain.text.printable import printable

MARKS = ascii_uppercase
MOST = len(MARKS)
"""Runs that have a letter."""
LONGEST_NAME = 40
LEAST_CELL = 8
"""Characters of a value, at least: if there is no space for that, lines are longer than the terminal."""
WIDEST_CHART = 120


def comparison_lines(comparison: Comparison, metrics: Sequence[str], width: int) -> list[str | Text]:
    """Return a comparison as lines.

    Args:
        comparison: Of ``MOST`` runs at most.
        metrics: Whose curves are drawn; none: of the one that most of the runs monitor.
        width: Characters of a line.
    """
    rows, marks = comparison.rows, list(MARKS[: len(comparison.rows)])
    lines = list(_heading(rows, marks))
    for title, facts in comparison.sections.items():
        lines += ["", *_section_lines(title, facts, marks, width)] if facts else []
        if title == "config" and comparison.num_hidden:
            keys = "1 key" if comparison.num_hidden == 1 else f"{comparison.num_hidden} keys"
            lines.append(f"and {keys} that only some of the runs have: --all")
    if same := [title for title, facts in comparison.sections.items() if not facts and title not in comparison.unknown]:
        lines += ["", f"nothing differs in: {', '.join(same)}"]
    if comparison.unknown:
        lines.append("the code of some is unknown: it is not in git")
    for name in metrics or common_metrics(rows)[:1]:
        lines += ["", *_curves(name, rows, marks, min(width, WIDEST_CHART))]
    return lines


def _heading(rows: Sequence[Row], marks: Sequence[str]) -> Iterator[str | Text]:
    for mark, row in zip(marks, rows, strict=True):
        line = Text.assemble(
            (mark, f"bold {mark_style(mark, marks)}"), f"  {printable(row.name)}  {printable(row.id)}  "
        )
        yield line.append(row.status, STYLES.get(row.status, "")).append(f"  {shown(row.path)}")
        if row.get("problem"):
            yield f"   {printable(row.get('problem'))}"


def _section_lines(title: str, facts: Facts, marks: Sequence[str], width: int) -> Iterator[Text]:
    names = [cut(printable(name), LONGEST_NAME) for name in facts]
    cells = [[text_of(name, value) for value in values] for name, values in facts.items()]
    first = max(len(title), *map(len, names))
    widest = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sizes = _fitted(widest, width - first - 2 * len(marks))
    yield _row([title.ljust(first), *(mark.ljust(size) for mark, size in zip(marks, sizes, strict=True))], "bold")
    for name, row in zip(names, cells, strict=True):
        yield _row([name.ljust(first), *(cut(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=True))])


def _row(cells: Sequence[str], style: str = "") -> Text:
    line = Text("  ".join(cells), style=style)
    line.rstrip()
    return line


def _fitted(widest: Sequence[int], space: int) -> list[int]:
    """Return the width of each column: the widest ones give way until all of them fit."""
    sizes = list(widest)
    while sum(sizes) > space and max(sizes) > LEAST_CELL:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _curves(name: str, rows: Sequence[Row], marks: Sequence[str], width: int) -> list[str | Text]:
    series = {mark: read_series(row.path).get(name, []) for mark, row in zip(marks, rows, strict=True)}
    drawn = chart({mark: points for mark, points in series.items() if points}, width)
    title = Text(printable(name), style="bold")
    return [title, *drawn] if drawn else [title, "  no run has reported it"]
