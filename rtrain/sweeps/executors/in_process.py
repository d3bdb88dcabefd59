"""Train trials in this process, one after the other: no Ray, for debuggers and notebooks."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

from rtrain.config.targets.forgetting import has_forgotten
from rtrain.config.trials import Plan
from rtrain.errors import RtrainError
from rtrain.process.interrupts import StopRequest
from rtrain.sweeps.data import Data
from rtrain.sweeps.executors.base import NO_ROOM, TrialListener
from rtrain.sweeps.trial_runner import ForwardingObserver, Task, train_trial


class TrialStop(StopRequest):
    """Ends one trial; a signal to the sweep ends it too."""

    def __init__(self, sweep: StopRequest) -> None:
        self._sweep = sweep
        self._reason: str | None = None
        super().__init__()

    @property
    def reason(self) -> str | None:
        """Why it should end."""
        return self._reason or self._sweep.reason

    @reason.setter
    def reason(self, value: str | None) -> None:
        self._reason = value

    @property
    def num_signals(self) -> int:
        """How many signals the sweep has received."""
        return self._sweep.num_signals

    @property
    def ending(self) -> bool:
        """The trial is over and its record is being written: a signal to the sweep interrupts nothing."""
        return self._sweep.ending

    @ending.setter
    def ending(self, value: bool) -> None:
        self._sweep.ending = value

    def verdict(self) -> tuple[str, str] | None:
        """Return what the sweep, or a signal, wants the trial to end with."""
        return self.asked or self._sweep.verdict()


class SequentialExecutor:
    """A pool that is this process.

    Args:
        hearer: Receives the state of trials.
        data: Reads their data.
        stop: Whether the sweep is to end.
    """

    most_at_once: int | None = 1
    """A search proposes the next trial once it has learned what this one came to."""
    obstacle = NO_ROOM

    def __init__(self, hearer: TrialListener, data: Data, stop: StopRequest) -> None:
        self._hearer, self._data, self._sweep = hearer, data, stop
        self._next: tuple[int, Plan] | None = None
        self._stop = TrialStop(stop)

    def try_start(self, number: int, plan: Plan) -> bool:
        """Take the trial as the next one."""
        self._next = number, plan
        return True

    def wait(self) -> None:
        """Train the trial."""
        if self._next is None:
            return
        number, plan = self._next
        self._stop = TrialStop(self._sweep)
        task = Task(plan=plan, cluster=None, num_threads=None)
        forwarding = ForwardingObserver(lambda record: self._hearer.hear(number, record))
        error: Mapping[str, Any] | None
        try:
            data = self._data.of(plan.composed)
        except RtrainError as raised:
            error = {"type": type(raised).__name__, "message": str(raised)}
        else:
            error = train_trial(task, data, forwarding, self._stop)
            self._stop.ending = False
            del data  # or it would outlive the trial
            if has_forgotten():
                gc.collect()  # models and arrays in modules of the trial before: modules and functions know each other
        self._next = None
        self._hearer.over(number, error)

    def stop(self, number: int, status: str, reason: str) -> None:
        """Ask the trial that is being trained."""
        self._stop.ask(status, reason)

    def close(self) -> None:
        """Nothing is left when ``wait`` returns."""
