"""Whether what a process has imported is still what is installed."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


class Imported:
    """The files of the modules that this process has imported so far, and the folders of installed packages."""

    def __init__(self) -> None:
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        self._files = {Path(path): _changed_at(Path(path)) for path in files if path}
        self._folders = {Path(path): _packages(Path(path)) for path in sys.path if path.endswith("-packages")}

    def has_changed(self) -> bool:
        """Return whether a file has been written since, or is gone, or other packages are installed."""
        return any(_changed_at(path) != at for path, at in self._files.items()) or any(
            _packages(path) != packages for path, packages in self._folders.items()
        )


def _changed_at(path: Path) -> int | None:
    """Return when a file was written, in ns; None if there is none."""
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return None


def _packages(folder: Path) -> set[str]:
    """Return the names of packages, with their versions; not where Python keeps what it compiles in its own time."""
    with suppress(OSError):
        return {path.name for path in folder.iterdir()} - {"__pycache__"}
    return set()
