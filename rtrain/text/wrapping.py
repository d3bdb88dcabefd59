"""Long lines of what a person reads, broken between words where a terminal would break them inside one."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from typing import TextIO

_VERBS = "fit|check|init|predict|evaluate|resume|runs|sweep|smoke|recipes|trainers|datasets"
_COMMAND = re.compile(rf" *(?!note|error)(?:\w+:|\w+ {{2,}})? *rtrain (?:{_VERBS}) ")
_COMMAND_BEHIND = re.compile(rf"(?<=: )rtrain (?:{_VERBS}) (?!.*[,;.)](?:\s|$)).+$")
"""A command at the end of a sentence."""
_LABEL = re.compile(r" *\S+ {2,}(?=\S)")
_LONGEST_LABEL = 24
_CARETS = re.compile(r"[ |]*\^+[^\w]*")
_SHELL_WORD = re.compile(r"( *)((?:'[^']*'|\"[^\"]*\"|[^\s'\"])+)")
_WORD = re.compile(r"( *)((?:-> )?\S+)")
_COLUMN = re.compile(r"( *)(\S+(?: \S+)*)")
NARROWEST = 24
"""Columns below which lines are left as they are."""


def columns(stream: TextIO) -> int | None:
    """Return how many characters a line of a terminal has, ``COLUMNS`` if that is set; None if there is none."""
    if not stream.isatty():
        return None
    try:
        own = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # it has no size, or the stream is one of Python alone
        own = 0
    return shutil.get_terminal_size((own, 0)).columns if "COLUMNS" in os.environ else own or None


def room(most: int, margin: int, stream: TextIO | None = None) -> int:
    """Return how long a text may be that is to stay in one line.

    Args:
        most: Its longest, wherever it is shown.
        margin: Characters before it.
        stream: Where it is shown; None: where errors are.
    """
    width = columns(sys.stderr if stream is None else stream)
    return most if width is None else max(min(most, width - margin), NARROWEST)


def fitted(text: str, stream: TextIO) -> str:
    """Return a text as it fits the terminal that a stream leads to; what leads elsewhere gets it as it is."""
    width = columns(stream)
    return text if width is None else wrapped(text, width)


def wrapped(text: str, width: int) -> str:
    """Return a text whose lines have at most ``width`` characters, but for words that are longer.

    Lines continue below the text behind their label. Commands are broken as a shell reads them, with backslashes;
    columns with two spaces between them stay whole. Lines with carets below them are not touched.

    Args:
        text: One or more lines.
        width: Characters of a line.
    """
    if width < NARROWEST:
        return text
    lines = text.split("\n")
    carets = [bool(_CARETS.fullmatch(line)) for line in lines] + [False]
    told: list[str] = []
    for number, line in enumerate(lines):
        is_marked = carets[number] or carets[number + 1]
        told += [line] if is_marked or len(line) <= width else _without_command(line, width)
    return "\n".join(told)


def _without_command(line: str, width: int) -> Iterator[str]:
    """Yield the lines that one line becomes; a command at its end gets separate lines, to be pasted."""
    behind = _COMMAND_BEHIND.search(line)
    if behind is None or _COMMAND.match(line):
        yield from _broken(line, width)
        return
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    yield from _broken(line[: behind.start()].rstrip(), width)
    yield from _broken(f"{indent}{behind[0]}", width)


def _broken(line: str, width: int) -> Iterator[str]:
    """Yield the lines that one line becomes."""
    end = " \\" if _COMMAND.match(line) else ""
    label = _LABEL.match(line)
    indent = len(line) - len(line.lstrip())
    hang = indent + 2
    if label is not None and label.end() <= _LONGEST_LABEL:
        hang = label.end()
    now = ""
    for gap, piece in _pieces(line, width - hang, is_command=bool(end)):
        if now.strip() and len(now) + len(gap) + len(piece) + len(end) > width:
            yield now + end
            now = " " * (hang if hang + len(piece) + len(end) <= width else min(hang, indent + 2)) + piece
        else:
            now += gap + piece
    yield now


def _pieces(line: str, most: int, *, is_command: bool) -> list[tuple[str, str]]:
    """Return what a line is not to be broken inside, with the spaces before each."""
    if is_command:
        return _SHELL_WORD.findall(line)
    columns: list[tuple[str, str]] = _COLUMN.findall(line)
    if len(columns) > 2 and all(len(text) <= most for _, text in columns):
        return columns
    return _WORD.findall(line)
