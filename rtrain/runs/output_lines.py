"""What workers print, line by line as a terminal shows it: they send it in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rtrain.runs.records import LogRecord

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Control sequences of a terminal (ECMA-48)."""


class OutputLines:
    """Makes whole lines of what some ranks print.

    Args:
        all_ranks: Those of all ranks, each with its rank before it; else of rank 0 alone.
    """

    def __init__(self, *, all_ranks: bool) -> None:
        self._all_ranks = all_ranks
        self._begun: dict[int, str] = {}
        """By rank, the beginning of a line that is not over."""

    def feed(self, record: LogRecord) -> str:
        """Return the lines that are complete by now, without the last line break; empty if there are none."""
        if not record.printed or not (self._all_ranks or record.rank == 0):
            return ""
        *lines, begun = (self._begun.get(record.rank, "") + record.text).split("\n")
        # A progress bar writes one line again and again.
        self._begun[record.rank] = begun if begun.endswith("\r") else _last_version(begun)
        return "\n".join(self._shown(record.rank, line) for line in lines)

    def rest(self) -> Iterator[str]:
        """Yield the lines that were not ended."""
        for rank, begun in sorted(self._begun.items()):
            if begun.strip():
                yield self._shown(rank, begun)
        self._begun.clear()

    def _shown(self, rank: int, line: str) -> str:
        text = _COLOURS.sub("", _last_version(line.rstrip("\r")))
        return f"[{rank}] {text}" if self._all_ranks else text


def _last_version(line: str) -> str:
    """Return what is left of a line after each return to its beginning."""
    return line.rpartition("\r")[2]
