"""Whether what a process has imported is still what is installed."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


class Imported:
    """The files of the modules that this process has imported so far, and the folders of installed packages."""

    def __init__(self) -> None:
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        folders = {folder for folder in sys.path if folder.endswith("-packages")}
        self._changed = {Path(path): changed_at(Path(path)) for path in folders | files if path}

    def has_changed(self) -> bool:
        """Return whether one of them has been written since, or is gone."""
        return any(changed_at(path) != at for path, at in self._changed.items())


def changed_at(path: Path) -> int | None:
    """Return when a file or folder was written, in ns; None if there is none."""
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return None
