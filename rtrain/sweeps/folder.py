"""The folder of a sweep while a process works on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtrain.runs.lock import FILE_NAME as LOCK
from rtrain.runs.lock import locked
from rtrain.sweeps.record import is_sweep


@contextmanager
def opened(folder: Path) -> Iterator[None]:
    """Hold the lock of a sweep's folder; one that is new goes again if nothing comes of the sweep.

    Raises:
        RunInUseError: Another process works on it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder):
            yield
    finally:
        if not is_sweep(folder) and not any(one.name != LOCK for one in folder.iterdir()):
            with suppress(OSError):
                (folder / LOCK).unlink(missing_ok=True)
                folder.rmdir()
