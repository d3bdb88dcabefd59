"""What workers print: one file for each rank, appended to while the run goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

MOST_OPEN = 16
"""Files that are open at a time; a process may have few more, and a run hundreds of ranks."""


class WorkerLogs:
    """Appends to ``worker-<rank>.log``; each line is in the file as soon as it is printed.

    Args:
        folder: Where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[int, TextIO] = {}

    def append(self, rank: int, text: str) -> None:
        """Add what a worker has printed."""
        if rank not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._folder / f"worker-{rank}.log", flags, 0o666)
            self._open[rank] = os.fdopen(descriptor, "a", encoding="utf-8", buffering=1)
        self._open[rank].write(text)

    def close(self) -> None:
        """Close all files."""
        while self._open:
            self._open.popitem()[1].close()
