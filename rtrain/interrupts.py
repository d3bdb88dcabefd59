"""Ctrl-C, SIGTERM and a time limit while a run goes on: the first asks it to stop, the second ends it at once."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "preempted", signal.SIGUSR1: "preempted"}
"""Signal to the run status that it leads to. Slurm sends SIGUSR1 some time before a job's time is over."""
GRACE_SECONDS = 10.0
"""Time between asking a run to stop, ending it at once, and ending the process."""


class StopRequest:
    """Whether, and why, the run should end early. Set by signals, read by the loops."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.signal: signal.Signals | None = None
        self.num_signals = 0
        self.asked: tuple[str, str] | None = None
        """The status and the reason that the run is to end with, where it is not a signal that ends it."""
        self.ending = False
        """The run is over and its record is being written: signals are counted, and interrupt nothing."""

    def ask(self, status: str, reason: str) -> None:
        """Have the run end soon, as a signal would."""
        self.asked, self.reason = (status, reason), self.reason or "interrupted"

    def verdict(self) -> tuple[str, str] | None:
        """Return the status and the reason that a run ends with which was stopped; None if nobody stopped it."""
        if self.asked is not None:
            return self.asked
        if self.signal is None or self.reason is None:
            return None
        name = "Ctrl-C" if self.signal is signal.SIGINT else self.signal.name
        return self.reason, f"stopped by {name}"

    def receive(self, signum: int, frame: FrameType | None = None) -> None:
        """Take a signal.

        Raises:
            KeyboardInterrupt: It is the second one: end now.
        """
        self.num_signals += 1
        if self.ending:
            return
        if self.reason is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(signum)
        self.reason = REASONS[self.signal]


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


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM leave the block as Ctrl-C does, so that what it started and half wrote is cleared away: exit 143."""

    def leave(signum: int, frame: FrameType | None) -> None:
        sys.exit(128 + signum)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def renew_sigterm() -> None:
    """Put this process's own handler of SIGTERM back in front: Ray's prints the stack of every thread before it."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)


class TimeLimit:
    """A limit of time, and whether it has passed."""

    def __init__(self) -> None:
        self.passed = False

    def receive(self, signum: int, frame: FrameType | None = None) -> None:
        """Take the alarm as if it were Ctrl-C, also where the process was started without one."""
        self.passed = True
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)


@contextmanager
def stopped_after(seconds: float) -> Iterator[TimeLimit]:
    """Stop what the block does after ``seconds`` as Ctrl-C would, and once more after a grace.

    What hangs so deep that it hears neither ends the process, with the traceback of every thread on stderr.
    Only for the main thread.
    """
    limit = TimeLimit()
    handler = signal.signal(signal.SIGALRM, limit.receive)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, GRACE_SECONDS)
    faulthandler.dump_traceback_later(seconds + 3 * GRACE_SECONDS, exit=True, file=sys.__stderr__ or 2)
    try:
        yield limit
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
