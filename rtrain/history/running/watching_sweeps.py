"""Watch a sweep that another process works on, from its ``sweep.json``."""

from __future__ import annotations

import time
from collections.abc import Callable

from rtrain.history.running.watching import Watched
from rtrain.runs.status import Status
from rtrain.sweeps.observer import SweepObserver
from rtrain.sweeps.record.sweep_record import load_record


def watch_sweep(sweep: Watched, observer: SweepObserver, wait: Callable[[float], None] = time.sleep) -> bool:
    """Show a sweep to an observer until it is over; return whether it could say how it ended.

    Args:
        sweep: The sweep; in its folder, at least its ``sweep.json`` appears.
        observer: Called as if the sweep were trained here; how many trials it has is how many it has planned so far.
        wait: Called with seconds between two looks.

    Raises:
        RtrainError: It is not a sweep, or its record is damaged.
    """
    record, told = load_record(sweep.folder), dict[str, str]()
    observer.sweep_started(record, len(record.trials))
    while True:
        goes_on = sweep.goes_on()  # asked before reading, so that the last record is read
        now = load_record(sweep.folder)
        record.trials, record.goals, record.status = now.trials, now.goals, now.status
        for trial in record.trials:
            if told.get(trial.name) != trial.status:
                told[trial.name] = trial.status
                observer.trial_changed(trial)
        if not goes_on:
            break
        wait(sweep.poll_seconds)
    if record.status != Status.RUNNING:
        observer.sweep_ended(record)
    return record.status != Status.RUNNING
