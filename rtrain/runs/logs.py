"""What workers print: a file for each rank, and whole lines of it as a terminal shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rtrain.runs.filesystem.files import unshare
from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.runs.records import LogRecord

MOST_OPEN = 16
"""Files that are open at a time; a process may have few more, and a run hundreds of ranks."""
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Control sequences of a terminal (ECMA-48)."""


class WorkerLogs:
    """Appends to ``worker-<rank>.log``; each line is in the file as soon as it is printed.

    Args:
        folder: Where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[int, IO[str]] = {}

    def append(self, rank: int, text: str) -> None:
        """Add what a worker has printed."""
        if rank not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            name = f"{self._folder.name}/worker-{rank}.log"
            unshare(self._folder.parent, name)
            how = {"encoding": "utf-8", "errors": "backslashreplace", "buffering": 1}  # as Python writes its stderr
            self._open[rank] = open_inside(self._folder.parent, name, "a", **how)
        self._open[rank].write(text)

    def close(self) -> None:
        """Close all files."""
        while self._open:
            self._open.popitem()[1].close()


class OutputLines:
    """Makes whole lines of what some ranks print: they send it in pieces.

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
