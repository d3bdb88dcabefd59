"""The copy of small files in a store: each is sent whole when it has changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.storage.folders import Folder, chunks_of


class SmallFiles:
    """Some files of a folder, and what was sent of them.

    Args:
        root: The folder, which is only read.
        folder: Where the copy is.
        patterns: Which files.
    """

    def __init__(self, root: Path, folder: Folder, patterns: Sequence[str]) -> None:
        self.folder = folder
        self.lost: dict[str, str] = {}
        self._root, self._patterns = root, patterns
        self._sent: dict[str, tuple[int, int]] = {}
        """Their state when they were sent."""

    def update(self, *, last: bool = False) -> None:
        """Send those that have changed; links do not count as files of the folder.

        Raises:
            Exception: The store's error. Files sent so far stay, and another call continues from there.
        """
        for path in (path for pattern in self._patterns for path in sorted(self._root.glob(pattern))):
            if path.is_file() and not path.is_symlink():
                self._send(path)

    def _send(self, path: Path) -> None:
        name = path.relative_to(self._root).as_posix()
        with open_inside(self._root, name) as file:
            facts = os.fstat(file.fileno())  # of the file that is read, which another may take the place of
            state = (facts.st_mtime_ns, facts.st_size)
            if self._sent.get(name) != state:
                self.folder.put(name, chunks_of(file, facts.st_size))
                self._sent[name] = state

    def missing(self) -> list[str]:
        """Return nothing: there are no checkpoints among them."""
        return []

    def has_news(self) -> bool:
        """Tell that nothing is in a hurry."""
        return False
