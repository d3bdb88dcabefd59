"""What was reported since the last checkpoint, for the next one to keep."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO

from rtrain.runs.filesystem.plain_files import open_inside

HELD_BYTES = 1 << 20
"""More than that lies in a temporary file."""


@dataclass
class UnsavedEvents:
    """Lines of ``events.jsonl``, in order, in bounded memory; safe to call from several threads."""

    end: int = 0
    """Bytes of all lines so far: ``write`` and ``drop`` get it to take the lines that there are now."""
    _first: int = 0
    """Bytes of those that were dropped."""
    _file: IO[bytes] = field(default_factory=partial(SpooledTemporaryFile, HELD_BYTES))
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        weakref.finalize(self, self._file.close)

    def add(self, line: str) -> None:
        """Add the line of an event."""
        content = line.encode()
        with self._lock:
            self._file.seek(self.end - self._first)
            self._file.write(content)
            self.end += len(content)

    def write(self, path: Path, end: int) -> None:
        """Write the lines before ``end`` to a new file, if there are some."""
        rest = end - self._first
        if not rest:
            return
        with self._lock, open_inside(path.parent, path.name, "wb") as file:
            self._file.seek(0)
            while rest > 0:
                rest -= file.write(self._file.read(min(rest, HELD_BYTES)))

    def drop(self, end: int) -> None:
        """Forget the lines before ``end``: a checkpoint has them."""
        with self._lock:
            self._file.seek(end - self._first)
            after = self._file.read()
            self._file.seek(0)
            self._file.truncate()
            self._file.write(after)
            self._first = end
