"""Threads that a train loop has started and that outlive it: what they report belongs to no run."""

from __future__ import annotations

import threading
from collections.abc import Collection

_MARK = "__rtrain_loop_over__"


def threads_now() -> frozenset[threading.Thread]:
    """Return the threads that Python has started; those of other languages serve one loop after another."""
    return frozenset(one for one in threading.enumerate() if not isinstance(one, threading._DummyThread))


def mark_leftovers(before: Collection[threading.Thread]) -> bool:
    """Mark the threads that were started since ``before`` and are still alive, when the loop that did so is over.

    Returns:
        Whether there are any.
    """
    found = threads_now() - {*before, threading.current_thread()}
    for thread in found:
        vars(thread)[_MARK] = True
    return bool(found)


def is_leftover() -> bool:
    """Return whether the current thread was started by a train loop that is over."""
    return _MARK in vars(threading.current_thread())
