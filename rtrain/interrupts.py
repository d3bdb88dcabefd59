"""Ctrl-C and SIGTERM while a run goes on: the first asks it to stop at the next step, the second ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "preempted"}
"""Signal to the run status that it leads to."""


class StopRequest:
    """Whether, and why, the run should end early. Set by signals, read by the loops."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def receive(self, signum: int, frame: FrameType | None = None) -> None:
        """Take a signal.

        Raises:
            KeyboardInterrupt: It is the second one: end now.
        """
        if self.reason is not None:
            raise KeyboardInterrupt
        self.reason = REASONS[signal.Signals(signum)]


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Send the process's signals to a ``StopRequest`` while the block runs; does nothing outside the main thread."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.receive) for number in REASONS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
