"""What workers print: one file for each rank, appended to during the run."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from rtrain.runs.filesystem.files import unshare
from rtrain.runs.filesystem.plain_files import open_inside

MOST_OPEN = 16
"""Files that are open at a time; a process may have few more, and a run hundreds of ranks."""


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
