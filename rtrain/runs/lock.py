"""One process at a time writes a run directory."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtrain.errors import RunInUseError
from rtrain.runs.plain_files import open_inside

FILE_NAME = ".lock"
LENGTH = 200
"""Characters that are read of what a lock says."""


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Hold the lock of a run directory; the system frees it when the process ends, however it ends.

    Raises:
        RunInUseError: Another process holds it; names that.
        FileNotFoundError: The directory, or the lock in it, has been removed.
        StrangeFileError: Its place is taken by a link, a pipe or the like.
    """
    with open_inside(run_dir, FILE_NAME, "a+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise RunInUseError(
                f"{run_dir} is in use by {file.read(LENGTH).strip() or 'another process'}.",
                "Wait until it ends, or start a run of its own: run.resume=never",
            ) from None
        if not os.path.samestat(os.fstat(file.fileno()), (run_dir / FILE_NAME).stat()):
            raise FileNotFoundError(f"{run_dir / FILE_NAME} was removed while it was being locked.")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}\n")
        file.flush()
        yield


def is_locked(run_dir: Path) -> bool:
    """Tell whether a process of this machine, or of one that shares its locks, writes the run directory now."""
    try:
        with open_inside(run_dir, FILE_NAME) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
