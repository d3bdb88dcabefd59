"""One process at a time writes a run directory."""

from __future__ import annotations

import fcntl
import math
import os
import platform
import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rtrain.errors import RunInUseError
from rtrain.runs.filesystem.plain_files import open_inside

LOCK = ".lock"
LENGTH = 200
"""Characters that are read of what a lock says."""
NUM_TRIES, PROBE_SECONDS = 5, 0.01
"""How often a lock is tried, and the time in between: ``is_locked`` of another process holds it for a moment."""
POLL_SECONDS = 0.2
_HOLDER = re.compile(r"process (\d+) on (\S*)(?:\nends (\w+): (.*))?")
_FILES: weakref.WeakSet[IO[str]] = weakref.WeakSet()
"""Of the locks that this process holds."""


class Lock:
    """The lock of a run directory; the system frees it when the process ends, however it ends.

    Args:
        run_dir: The run directory.

    Raises:
        RunInUseError: Another process holds it; names that.
        FileNotFoundError: The directory, or the lock in it, has been removed.
        StrangeFileError: Its place is taken by a link, a pipe or the like.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._file = _acquire(run_dir)

    def renew(self) -> None:
        """Lock the directory that has this name now, if this one, or the lock in it, was moved or removed.

        Raises:
            RunInUseError: Another process has locked it meanwhile.
        """
        if not is_in_place(self._file.fileno(), self._run_dir / LOCK):
            self._run_dir.mkdir(parents=True, exist_ok=True)
            self._file, moved = _acquire(self._run_dir), self._file
            moved.close()

    def note_end(self, status: str, reason: str) -> None:
        """Note that the process was asked to end, with a status and a reason; ``end_asked`` returns them.

        A handler of signals may call it.
        """
        with suppress(OSError, ValueError):  # a full disk, or the lock was freed: the process ends all the same
            os.write(self._file.fileno(), f"ends {status}: {reason}\n".encode())
            os.fsync(self._file.fileno())  # other machines read it, through a network file system

    def close(self) -> None:
        """Free it."""
        self._file.close()


@contextmanager
def locked(run_dir: Path) -> Iterator[Lock]:
    """Hold the lock of a run directory in the block.

    Raises:
        RunInUseError: Another process holds it; names that.
        FileNotFoundError: The directory, or the lock in it, has been removed.
        StrangeFileError: Its place is taken by a link, a pipe or the like.
    """
    lock = Lock(run_dir)
    try:
        yield lock
    finally:
        lock.close()


def is_locked(run_dir: Path) -> bool:
    """Tell whether a process of this machine, or of one that shares its locks, writes the run directory now."""
    try:
        with open_inside(run_dir, LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def holder(run_dir: Path) -> tuple[int, str] | None:
    """Return the process that holds the lock of a run directory, and its host; None if none does, or it is unknown."""
    found = _read(run_dir) if is_locked(run_dir) else None
    return None if found is None else (int(found[1]), found[2])


def wait_until_free(run_dir: Path, seconds: float = math.inf, wait: Callable[[float], None] = time.sleep) -> bool:
    """Wait until no process writes the run directory any more; return whether that was so within some seconds."""
    deadline = time.monotonic() + seconds
    while is_locked(run_dir):
        if time.monotonic() > deadline:
            return False
        wait(POLL_SECONDS)
    return True


def is_abandoned(run_dir: Path, process: tuple[int, str]) -> bool:
    """Return whether a process no longer holds the lock of a directory. Only its own machine knows.

    Args:
        run_dir: The directory.
        process: As ``holder`` returned it.
    """
    found = _read(run_dir)
    if found is None or process[1] != platform.node():
        return False
    return (int(found[1]), found[2]) != process or not is_locked(run_dir)


def end_asked(run_dir: Path) -> tuple[str, str] | None:
    """Return the status and the reason with which the process was asked to end that locked a directory last."""
    found = _read(run_dir)
    return None if found is None or found[3] is None else (found[3], found[4])


def _read(run_dir: Path) -> re.Match[str] | None:
    try:
        with open_inside(run_dir, LOCK, "r", encoding="utf-8", errors="replace") as file:
            return _HOLDER.fullmatch(file.read(LENGTH).strip())
    except FileNotFoundError:
        return None


def is_in_place(descriptor: int, path: Path) -> bool:
    """Return whether ``path`` still names the open file. Otherwise a lock on it excludes no other process."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _acquire(run_dir: Path) -> IO[str]:
    """Return the locked file."""
    file = open_inside(run_dir, LOCK, "a+", encoding="utf-8", errors="replace")
    _FILES.add(file)
    try:
        _lock(file)
        if not is_in_place(file.fileno(), run_dir / LOCK):
            raise FileNotFoundError(f"{run_dir / LOCK} was removed while it was being locked.")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}\n")
        file.flush()
    except BlockingIOError:
        file.seek(0)
        holder = file.read(LENGTH).partition("\n")[0] or "another process"
        file.close()
        raise RunInUseError(
            f"{run_dir} is in use by {holder}.", "Wait until it ends, or start a new run: run.resume=never"
        ) from None
    except BaseException:
        file.close()
        raise
    return file


def _lock(file: IO[str]) -> None:
    for left in reversed(range(NUM_TRIES)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
            time.sleep(PROBE_SECONDS)


def _leave_to_parent() -> None:
    """Close the locks in a fork of the process, which would hold them for as long as it lives."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for file in (one for one in _FILES if not one.closed):
        os.dup2(null, file.fileno(), inheritable=False)
    os.close(null)


os.register_at_fork(after_in_child=_leave_to_parent)
