"""A thread that brings a run to another place while it trains: to a store, to a tracker."""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

BACKOFF_SECONDS = (1.0, 60.0)
"""The first and the longest wait after a failure; each is about twice as long as the one before."""
ENDING_BACKOFF_SECONDS = 2.0
"""The longest wait once the run is over."""
LOOK_SECONDS = 0.05


class RetryingThread(ABC):
    """Sends what is new, again and again, and retries what fails, until it is asked to end; training never waits.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._ending, self._given_up = threading.Event(), threading.Event()
        self._moved_at = time.monotonic()
        self._error: str | None = None
        """What the other side said last; None: it works."""
        self._is_done = False
        self._thread = threading.Thread(target=self._run, name=f"rtrain-{name}", daemon=True)

    @abstractmethod
    def _send(self, *, last: bool) -> None:
        """Send what is new; ``last``: it is not called again. It raises what the other side says."""

    @abstractmethod
    def _wait_for_news(self) -> None:
        """Return when it is time to look again, and when ``_ending`` is set."""

    @abstractmethod
    def _note_failure(self, error: BaseException) -> str | None:
        """Return what ``_error`` is from now on. It may come after the rest was given up."""

    def _is_done_in(self, timeout_seconds: float, hurry: Callable[[], bool]) -> bool:
        """Have the thread send the rest and end; tell whether it could.

        Args:
            timeout_seconds: How long the other side may take nothing before the rest is given up.
            hurry: Whether to give up the rest immediately.
        """
        self._moved_at = time.monotonic()
        self._ending.set()
        try:
            while self._thread.is_alive() and time.monotonic() - self._moved_at < timeout_seconds and not hurry():
                self._thread.join(LOOK_SECONDS)
        finally:
            self._given_up.set()
        return self._is_done

    def _run(self) -> None:
        failures = 0
        while not self._given_up.is_set():
            last = self._ending.is_set()
            try:
                self._send(last=last)
                self._error = None
                if last:
                    self._is_done = True
                    return
                self._wait_for_news()
            except (Exception, SystemExit) as error:  # whatever the other side's library raises
                failures = 0 if self._error is None else failures + 1
                self._error = self._note_failure(error)
                self._pause(failures)

    def _pause(self, failures: int) -> None:
        first, longest = BACKOFF_SECONDS
        seconds = min(longest, first * 2**failures) * random.uniform(0.5, 1)
        if self._ending.is_set():
            self._given_up.wait(min(seconds, ENDING_BACKOFF_SECONDS))
        else:
            self._ending.wait(seconds)
