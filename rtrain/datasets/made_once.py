"""What takes long to make of data, on disk: each machine makes it once, for all ranks, trials and later runs.

It lies in ``$XDG_CACHE_HOME`` or ``~/.cache``, below ``rtrain``: a folder for each result, named by a hash of all that
decides it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rtrain.datasets.remote import cache_dir

MAX_DAYS = 30
"""After so many days without use, a result is removed."""


def made_once(kind: str, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` has filled, now or before.

    Processes that ask for the same one at the same time wait for the first of them. The folder appears complete or not
    at all.

    Args:
        kind: The folder of all results of a kind, ``tokens`` say.
        name: Equal for equal results.
        make: Fills an empty folder.

    Raises:
        OSError: The disk is full, or read-only.
    """
    folder = cache_dir().with_name(kind) / name
    with _locked(folder.with_suffix(".lock")):
        if not folder.is_dir():
            _fill(folder, make)
            _remove_unused(folder.parent)
        os.utime(folder)
    return folder


def _locked(file: Path) -> IO[str]:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = file.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        lock.close()
        raise
    return lock


def _fill(folder: Path, make: Callable[[Path], None]) -> None:
    temporary = folder.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a process that was killed
    temporary.mkdir(mode=0o700)
    try:
        make(temporary)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_unused(folder: Path) -> None:
    """Remove what no run has used for a long time; those that use it have opened its files and keep them."""
    oldest = time.time() - MAX_DAYS * 86_400
    for place in folder.iterdir():
        if place.is_dir() and place.stat().st_mtime < oldest:
            shutil.rmtree(place, ignore_errors=True)
            place.with_suffix(".lock").unlink(missing_ok=True)
