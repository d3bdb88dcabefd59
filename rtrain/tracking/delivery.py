"""A thread that brings a run's events to one tracker; training never waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from rtrain.errors import first_line
from rtrain.loggers.base import Delivered, LoggedRun, Logger, Outcome
from rtrain.process.retrying import RetryingThread
from rtrain.runs.events import events_file
from rtrain.tracking.position import Position, load_position, read_new, save_position
from rtrain.tracking.system_metrics import SystemMetrics

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often a run's events are looked at."""


class Delivery(RetryingThread):
    """Sends a run to a tracker until it is asked to end.

    Args:
        name: Of the logger.
        make: Makes the logger; again after each failure.
        run: The facts about the run that the tracker receives.
        notice: Takes a line for the user, without secrets.
        system_seconds: How often the tracker is sent how busy this machine is; None: never.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Logger],
        run: LoggedRun,
        notice: Callable[[str], None],
        system_seconds: float | None = None,
    ) -> None:
        super().__init__(name)
        self.name, self._make, self._run_of, self._notice = name, make, run, notice
        self._position, self._ids = load_position(run.folder, name) or (Position(), {})
        self._furthest = self._position.offset
        self._system = None if system_seconds is None else SystemMetrics(run.started_at, system_seconds)
        self._logger: Logger | None = None
        self._outcome: Outcome | None = None
        self._thread.start()

    def finish(self, outcome: Outcome, timeout_seconds: float, hurry: Callable[[], bool]) -> str | None:
        """Wait until everything is delivered.

        Args:
            outcome: How the run ended.
            timeout_seconds: How long the tracker may take nothing before the rest is given up.
            hurry: Whether to give up the rest immediately.

        Returns:
            Why the tracker lacks something; None if it has everything.
        """
        self._outcome = outcome
        if self._is_done_in(timeout_seconds, hurry):
            return None
        return self._error or f"it accepted nothing for {timeout_seconds:g} seconds"

    def _send(self, *, last: bool) -> None:
        while self._deliver():
            self._error = None
        if last:
            self._end()
        else:
            self._send_system()

    def _wait_for_news(self) -> None:
        self._ending.wait(POLL_SECONDS)

    def _deliver(self) -> bool:
        """Send some of what is new; tell whether there was anything."""
        opened = self._logger or self._open()
        events, position = read_new(events_file(self._run_of.folder), self._position)
        if position == self._position:
            return False
        if events:
            opened.log(events)
        self._note_delivered(position)
        return True

    def _send_system(self) -> None:
        takes_it = self._logger is not None and type(self._logger).log_system is not Logger.log_system
        sample = self._system.due() if takes_it and self._system is not None else None
        if self._logger is not None and sample is not None:
            self._logger.log_system(sample)

    def _open(self) -> Logger:
        opened = self._logger = self._make()
        at = self._position
        ids = opened.open(self._run_of, Delivered(events=at.events, step=at.step, ids=self._ids))
        if self._ids and dict(ids) != self._ids:
            self._position = Position()
        self._ids = dict(ids)
        self._note_delivered(self._position)
        return opened

    def _end(self) -> None:
        assert self._logger is not None
        assert self._outcome is not None
        self._logger.end(self._outcome)
        self._logger.close()

    def _note_delivered(self, position: Position) -> None:
        self._position = position
        if position.offset > self._furthest:  # a tracker that is opened again and again doesn't take anything
            self._furthest, self._moved_at = position.offset, time.monotonic()
        save_position(self._run_of.folder, self.name, position, self._ids)

    def _note_failure(self, error: BaseException) -> str:
        """Report the first failure, and release the logger that failed."""
        logger.info("%s: %s", self.name, error, exc_info=error)
        if self._error is None:
            why = f"{type(error).__name__}: {first_line(error)}"
            self._notice(f"{self.name} does not respond ({why}); missing data is sent when it works again")
        failed, self._logger = self._logger, None
        try:
            if failed is not None:
                failed.close()
        except (Exception, SystemExit) as other:  # what has failed may fail to close
            logger.info("%s could not be closed: %s", self.name, other)
        return f"{type(error).__name__}: {first_line(error)}"
