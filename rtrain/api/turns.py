"""One training at a time in a process: Hydra's state and the random numbers of libraries are the process's own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_TURN = threading.RLock()


@contextmanager
def own_turn() -> Iterator[None]:
    """Wait until no other thread of this process trains.

    Warns:
        UserWarning: One does.
    """
    if not _TURN.acquire(blocking=False):
        warnings.warn(
            "another thread of this process is training: this call waits until it has finished. Separate processes can "
            "train at the same time, and so can the trials of a sweep.",
            stacklevel=2,
        )
        _TURN.acquire()
    try:
        yield
    finally:
        _TURN.release()
