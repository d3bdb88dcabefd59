"""What takes long to make of data, on disk: each machine makes it once, for all ranks, trials and later runs.

It lies in ``$XDG_CACHE_HOME`` or ``~/.cache``, below ``rtrain``: a folder for each result, named by a hash of all that
decides it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import IO

from rtrain.datasets.remote import cache_dir
from rtrain.errors import DatasetError
from rtrain.runs.filesystem.files import sync_file, write_atomic

SIZES = "sizes.json"
"""What a folder holds; written last."""
MAX_DAYS = 30
"""After so many days without use, a result is removed."""


def made_once(kind: str, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` has filled, now or before.

    Processes that ask for the same one at the same time wait for the first of them. The folder appears complete or not
    at all, and is made again if files of it are missing or shorter than they were.

    Args:
        kind: The folder of all results of a kind, ``tokens`` say.
        name: Equal for equal results.
        make: Fills an empty folder.

    Raises:
        OSError: It has to be made, and the disk is full, or read-only.
    """
    folder = cache_dir().with_name(kind) / name
    try:
        lock = _locked(folder.with_suffix(".lock"))
    except OSError:
        if _is_whole(folder):  # on a disk that is read-only, or belongs to someone else
            return folder
        raise
    with lock:
        if not _is_whole(folder):
            _fill(folder, make)
            _remove_unused(folder.parent)
        os.utime(folder)
    return folder


def not_written(what: str, error: OSError) -> DatasetError:
    """Return the error of what is made once and can't be held in memory instead."""
    hint = "Let XDG_CACHE_HOME name a folder with enough space, or use dataset.memory=resident."
    return DatasetError(f"{what} can't be written to the cache: {error}", hint)


def identity(files: Iterable[Path]) -> str:
    """Return a hash that changes with every file, wherever it lies; contents are not read.

    Unlike ``files_fingerprint``, it tells two files of one name, size and time apart.
    """
    digest = sha256()
    for file in files:
        stat = file.stat()
        facts = (file.resolve(), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        digest.update("\0".join(map(str, facts)).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


def _is_whole(folder: Path) -> bool:
    try:
        sizes: dict[str, int] = json.loads((folder / SIZES).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


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
        files = [file for file in temporary.rglob("*") if file.is_file()]
        for file in files:
            sync_file(file)
        write_atomic(
            temporary / SIZES, json.dumps({str(one.relative_to(temporary)): one.stat().st_size for one in files})
        )
        if folder.exists():  # damaged
            shutil.rmtree(folder)
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
