"""Curves in a terminal: one line of blocks for a metric, or a chart of several runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.text import Text

from rtrain.history.series import Points, binned
from rtrain.text.numbers import number_text

BLOCKS = "▁▂▃▄▅▆▇█"
STYLES = ("cyan", "magenta", "yellow", "green", "blue", "red")
OVERLAP = "*"
"""Where curves of several runs meet."""


def sparkline(points: Points, width: int) -> str:
    """Return a curve in one line, left to right by steps; parts without a value are filled from before."""
    if not points:
        return ""
    first, last = points[0][0], points[-1][0]
    values = binned(points, first, last, min(width, len(points)))
    known = [one for one in values if math.isfinite(one)]
    if not known:
        return ""
    low, high = min(known), max(known)
    text, block = "", " "
    for value in values:
        if math.isfinite(value):
            block = BLOCKS[_level(value, low, high, len(BLOCKS))]
        text += block
    return text


def _level(value: float, low: float, high: float, num_levels: int) -> int:
    """Return which of some levels, 0 is the lowest one, a value is on; the middle one if all values are equal."""
    if high <= low:
        return num_levels // 2
    return min(num_levels - 1, int((value - low) / (high - low) * num_levels))


def chart(series: Mapping[str, Points], width: int, height: int = 12) -> list[Text]:
    """Return curves drawn over each other, each with the letter or the digit that it is called by.

    Args:
        series: The points of each curve by its mark, one character.
        width: Characters of a line.
        height: Lines of the chart.
    """
    steps = [step for points in series.values() for step, _ in points]
    values = [value for points in series.values() for _, value in points if math.isfinite(value)]
    if not values:
        return []
    first, last, low, high = min(steps), max(steps), min(values), max(values)
    labels = [number_text(high), number_text((low + high) / 2), number_text(low)]
    margin = max(map(len, labels))
    columns = width - margin - 2
    canvas = [[" "] * columns for _ in range(height)]
    for mark, points in series.items():
        _draw(canvas, mark, binned(points, first, last, columns), low, high)
    shown = {0: labels[0], height // 2: labels[1], height - 1: labels[2]}
    lines = [_line(shown.get(row, "").rjust(margin), cells, list(series)) for row, cells in enumerate(canvas)]
    ends = f"step {first:,}", f"{last:,}"
    return [*lines, Text(" " * (margin + 2) + ends[0] + ends[1].rjust(columns - len(ends[0])))]


def _draw(canvas: list[list[str]], mark: str, values: Sequence[float], low: float, high: float) -> None:
    """Put a mark into each column that has a value, and between it and the one before."""
    known = [(column, _level(value, low, high, len(canvas))) for column, value in enumerate(values) if value == value]
    for (start, before), (end, after) in zip(known, known[1:] or known, strict=False):
        for column in range(start, end + 1):
            level = round(before + (after - before) * (column - start) / max(1, end - start))
            _put(canvas[len(canvas) - 1 - level], column, mark)


def _put(row: list[str], column: int, mark: str) -> None:
    row[column] = mark if row[column] in (" ", mark) else OVERLAP


def _line(label: str, cells: Sequence[str], marks: Sequence[str]) -> Text:
    line = Text(f"{label} │")
    for cell in "".join(cells).rstrip():
        line.append(cell, mark_style(cell, marks))
    return line


def mark_style(mark: str, marks: Sequence[str]) -> str:
    """Return the colour of a run in a chart."""
    return STYLES[marks.index(mark) % len(STYLES)] if mark in marks else ""
