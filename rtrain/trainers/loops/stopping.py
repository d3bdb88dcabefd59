"""Let all ranks of a run leave, or save, at the same step, without an exchange between them at every step."""

from __future__ import annotations

import math
import time

from rtrain.runs.status import SIGNALLED, Status
from rtrain.trainers.loops.collectives import Collectives
from rtrain.trainers.worker import Worker

CHECK_SECONDS = 0.2
TIME_LIMIT = "time limit"
CALLBACK = "a callback"
STOPS = ("", CALLBACK, TIME_LIMIT, *SIGNALLED)
"""Reasons to stop early, by the number that ranks exchange."""


class StopSignal:
    """Makes all ranks stop, or save, at the same step, without an exchange at every step.

    Ranks exchange their wishes at agreed steps only; at each of them rank 0 proposes the next one, so that about
    ``CHECK_SECONDS`` pass in between.

    Args:
        worker: Knows what the driver wants, and the time.
        ranks: All of them.
        max_seconds: The trainer's limit of the time, or None.
        seconds_before: Duration of the run before it was resumed.
    """

    def __init__(
        self, worker: Worker, ranks: Collectives, max_seconds: float | None, seconds_before: float = 0.0
    ) -> None:
        self._worker, self._ranks = worker, ranks
        limits = {"trainer.max_seconds": max_seconds, "run.stop.max_seconds": worker.run.stop.max_seconds}
        self._limits = {key: limit for key, limit in limits.items() if limit is not None}
        self._max_seconds, self._seconds_before = min(self._limits.values(), default=None), seconds_before
        self._next = 0
        self._last: tuple[int, float] | None = None
        """Step and time of the exchange before."""
        self._saved_at, self._request = time.monotonic(), worker.channel.save_requested
        self._save = self._is_asked = False

    @property
    def seconds(self) -> float:
        """Seconds that the run has taken, interruptions left out."""
        return self._seconds_before + self._worker.elapsed_seconds()

    @property
    def was_over(self) -> bool:
        """Whether the time was used up before the run was resumed; the same on every rank."""
        return self._max_seconds is not None and self._seconds_before >= self._max_seconds

    @property
    def longer(self) -> list[str]:
        """The overrides that give a run whose time was over before it was resumed as much time again."""
        over = {key: limit for key, limit in self._limits.items() if self._seconds_before >= limit}
        return [f"{key}={math.ceil(self._seconds_before + limit)}" for key, limit in over.items()]

    def agreed(self, step: int) -> str:
        """Return why all ranks stop at ``step``, or an empty string; every rank calls it at every step."""
        if self._ranks.size > 1 and step < self._next:
            self._save = False
            return ""
        wishes = [self._wish(), float(self._wants_checkpoint())]
        if self._ranks.size > 1:
            *wishes, pause = self._ranks.max([*wishes, self._pause(step) if self._ranks.rank == 0 else 0])
            self._next = step + int(pause)
        self._save = bool(wishes[1])
        return STOPS[int(wishes[0])]

    def ask(self) -> None:
        """Have all ranks stop at the next step at which they agree on it: a callback wants it."""
        self._is_asked = True

    def save_agreed(self) -> bool:
        """Return whether all ranks save at the step of the last ``agreed``, because the time for it has come."""
        return self._save

    def saved(self) -> None:
        """Note that a checkpoint was taken: the time until the next one begins."""
        self._saved_at, self._request, self._save = time.monotonic(), self._worker.channel.save_requested, False

    def _wish(self) -> int:
        reason = self._worker.stop_reason
        if reason:
            return STOPS.index(reason) if reason in STOPS else STOPS.index(Status.INTERRUPTED)
        is_over = self._max_seconds is not None and self.seconds >= self._max_seconds
        return STOPS.index(TIME_LIMIT if is_over else CALLBACK if self._is_asked else "")

    def _wants_checkpoint(self) -> bool:
        every = self._worker.run.checkpoint.every_seconds
        if every is not None and time.monotonic() - self._saved_at >= every:
            return True
        return self._worker.channel.save_requested != self._request

    def _pause(self, step: int) -> int:
        """Return how many steps may pass until the next exchange, by the speed since the last one."""
        now, last = time.monotonic(), self._last
        self._last = step, now
        if last is None:
            return 1
        seconds_per_step = (now - last[1]) / max(1, step - last[0])
        return max(1, min(1000, int(CHECK_SECONDS / max(seconds_per_step, 1e-6))))
