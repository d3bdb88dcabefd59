"""Locks of threads that are free in a fork: whoever held one when the process was forked has no thread there.

User code forks while its threads print (``multiprocessing``, loaders): without this, the child's first line would wait
forever.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_LOCKS: WeakSet[Any] = WeakSet()


def fork_safe_lock() -> threading.RLock:
    """Return a lock that each fork of this process gets free; its holder may take it again."""
    lock = threading.RLock()
    free_in_forks(lock)
    return lock


def free_in_forks(*locks: Any) -> None:
    """Make locks that exist, those of libraries too, free in each fork of this process."""
    _LOCKS.update(locks)


def _free() -> None:
    for lock in _LOCKS:
        lock._at_fork_reinit()  # as Python's logging does


os.register_at_fork(after_in_child=_free)
