"""Facts of runs as texts, and how wide what shows them may be."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.text import Text

from rtrain.history.query.fields import DURATIONS, OWN, SIZES, TIMES
from rtrain.history.query.quantities import age_text, duration_text, size_text, time_text
from rtrain.runs.filesystem.files import to_json
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable

MISSING = "-"
WIDTH_OF_PIPES = 120
"""Columns of what is not a terminal, unless ``COLUMNS`` says it."""


def line_width() -> int:
    """Return the columns of the terminal, or of the pipe."""
    return shutil.get_terminal_size((WIDTH_OF_PIPES, 24)).columns


def text_of(name: str, value: Any) -> str:
    """Return a fact as a text of one line."""
    if value is None:
        return MISSING
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name == "age":
            return age_text(value)
        for names, told in ((TIMES, time_text), (DURATIONS, duration_text), (SIZES, size_text)):
            if name in names:
                return told(float(value))
        return str(value) if isinstance(value, int) else number_text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(text_of("", one) for one in value) or (MISSING if name in OWN else "[]")
    if isinstance(value, Mapping):
        return printable(str(value.get("_target_") or to_json(value)))  # a part of a list: a callback, say
    return printable(str(value)) or MISSING


def cut(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters; one that was cut ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def broken_lines(text: str, width: int, indent: str = "") -> list[str]:
    """Return the lines of a text, broken between words alone."""
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    found: list[str] = []
    for line in printable(text, "\n").split("\n"):
        start = indent + line[: len(line) - len(line.lstrip())]
        lines = wrap(line.strip(), width, initial_indent=start, subsequent_indent=start, **how)
        found += lines or [""]
    return found


def show(lines: Sequence[str | Text]) -> None:
    """Print lines, with colours on a terminal that takes them; none of them is broken, and none is obeyed."""
    console = Console(file=sys.stdout)
    for line in map(_safe, lines):
        if console.is_terminal:
            console.print(line, soft_wrap=True)
        else:
            print(line)  # noqa: T201
    sys.stdout.flush()


def _safe(line: str | Text) -> Text:
    """Return a line without what a terminal obeys, whoever wrote the names in it."""
    plain = str(line)
    if plain.isprintable():
        return line if isinstance(line, Text) else Text(line)
    return Text(printable(plain))
