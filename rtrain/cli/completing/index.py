"""The index that a TAB is answered from: all commands and keys, kept in a file until what is installed changes.

It lies in ``$XDG_CACHE_HOME/rtrain``, by default ``~/.cache/rtrain``. Importing the schemas takes longer than a TAB.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import rtrain


def kept(name: str) -> Any:
    """Return what was kept by a name; None if there is nothing, or from another installation."""
    try:
        found = json.loads(_path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: the account has no home
        return None
    return found["data"] if isinstance(found, dict) and found.get("of") == _installation() else None


def keep(name: str, data: Any) -> None:
    """Keep plain data by a name; do without where nothing can be written."""
    try:
        path = _path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = path.with_name(f"{path.name}.{os.getpid()}")
        own.write_text(json.dumps({"of": _installation(), "data": data}), encoding="utf-8")
        own.replace(path)
    except (OSError, RuntimeError):
        return


def kept_or_made(name: str, make: Callable[[], Any]) -> Any:
    """Return what was kept by a name; make and keep it if there is nothing."""
    found = kept(name)
    if found is None:
        found = make()
        keep(name, found)
    return found


def _path(name: str) -> Path:
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path.home() / ".cache") / "rtrain" / f"completion-{name}.json"


@cache
def _installation() -> str:
    """Return a mark of what is installed: the newest of rtrain's files, and the folders of packages."""
    root = Path(rtrain.__file__).parent
    newest = max(entry.stat().st_mtime_ns for entry in _sources(str(root)))
    folders = [(one, Path(one).stat().st_mtime_ns) for one in sys.path if one and Path(one).is_dir()]
    return hashlib.sha256(repr((str(root), newest, folders)).encode()).hexdigest()


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the Python files below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)
