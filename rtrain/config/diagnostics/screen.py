"""The text of a config error: the message, the line of the file or the word of the command, and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtrain.config.secrets.masked_lines import masked_lines, masked_message
from rtrain.text.wrapping import room

if TYPE_CHECKING:
    from rtrain.config.calls.call import Call

CONTEXT_LINES = 1
MAX_WIDTH = 116
MARGIN = 11
"""Characters before a line of a file, with its number."""


@dataclass(frozen=True)
class FileLocation:
    """A place in a file; ``line`` and ``column`` count from 0."""

    file: str
    text: str
    line: int
    column: int
    width: int
    value: str | None = None
    """What stands after the key, if it fits a line."""

    def render(self) -> list[str]:
        """Return the place as lines: file, line and column, then the line itself with carets, and one around it."""
        lines = masked_lines(self.text)[0]
        out = [f"  --> {self.file}:{self.line + 1}:{self.column + 1}"]
        last = min(self.line + CONTEXT_LINES, len(lines) - 1)
        for number in range(max(self.line - CONTEXT_LINES, 0), last + 1):
            here = number == self.line
            if here or lines[number].strip():
                out.append(f"  {'>' if here else ' '} {number + 1:>4} | {_plain(lines[number])}".rstrip())
            if here:
                most = room(MAX_WIDTH, MARGIN)
                column = min(self.column, most)
                out.append(f"         | {' ' * column}{'^' * max(min(self.width, most - column), 1)}")
        return out


@dataclass(frozen=True)
class CliWord:
    """One word of the command line; the carets stand under it."""

    command: Sequence[str]
    index: int
    call: Call | None = None
    """The call from Python that the command stands for."""

    def render(self) -> list[str]:
        """Return the command as a line with carets under the word; other words give way where it is too long.

        Of a call from Python, return that.
        """
        if self.call is not None:
            first = len(self.command) - len(self.call.overrides)
            return self.call.render(self.command[first:], max(self.index - first, -1))
        before, word = " ".join(self.command[: self.index]), self.command[self.index]
        after = self.command[self.index + 1 :]
        most = room(MAX_WIDTH, 4)
        if len(before) + len(word) > most - 8:
            before = " ".join([*self.command[: min(3, self.index)], "..."])
        line = " ".join([before, word, *after])
        if len(line) > most:
            line = f"{before} {word}" + (" ..." if after else "")
        return [f"    {line}", f"    {' ' * (len(before) + 1)}{'^' * len(word)}"]


def render(message: str, spot: FileLocation | CliWord | None = None) -> str:
    """Return the message with the place that it is about below it, both without secrets of the file."""
    if isinstance(spot, FileLocation):
        message = masked_message(message, masked_lines(spot.text)[1])
    return "\n".join([message, *(spot.render() if spot is not None else [])])


def _plain(line: str) -> str:
    """Return ``line`` with tabs as one column each, so that carets stay below what they point at."""
    return line.replace("\t", " ")[: room(MAX_WIDTH, MARGIN)]
