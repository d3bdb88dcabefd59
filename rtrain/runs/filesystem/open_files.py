"""Files that processes have open for writing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

STREAMS = (1, 2)
"""Standard output and standard error."""
PROCESSES = Path("/proc")

FileId = tuple[int, int]
"""Device and number of a file."""


def written_by_others(folder: Path) -> set[FileId]:
    """Return the files in a folder that this process's standard streams and other processes write to now.

    Args:
        folder: The folder. Only files in it, or below, are looked at.
    """
    return {*_of_streams(), *_of_other_processes(f"{folder.resolve()}{os.sep}")}


def file_id(path: Path) -> FileId | None:
    """Return what tells a file from all others; None if there is no such file."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _of_streams() -> Iterator[FileId]:
    for number in STREAMS:
        try:
            about = os.fstat(number)
        except OSError:  # it is closed
            continue
        yield about.st_dev, about.st_ino


def _of_other_processes(inside: str) -> Iterator[FileId]:
    """Yield the files of this account's other processes whose paths begin with ``inside``, where ``/proc`` has them."""
    for folder in PROCESSES.glob("[0-9]*/fd"):
        if folder.parent.name == str(os.getpid()):
            continue
        try:
            links = list(folder.iterdir())
        except OSError:  # the process has ended, or is another account's
            continue
        for link in links:
            with suppress(OSError):  # it was closed since
                if str(link.readlink()).startswith(inside) and link.lstat().st_mode & stat.S_IWUSR:
                    about = link.stat()
                    yield about.st_dev, about.st_ino
