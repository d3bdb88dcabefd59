"""Watch a sweep that another process works on, from its ``sweep.json``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rtrain.runs.filesystem.lock import is_locked
from rtrain.sweeps.observer import SweepObserver
from rtrain.sweeps.record.sweep_record import load_record

POLL_SECONDS = 0.5


def watch_sweep(folder: Path, observer: SweepObserver, wait: Callable[[float], None] = time.sleep) -> bool:
    """Show a sweep to an observer until it is over; return whether it could say how it ended.

    Args:
        folder: Of the sweep.
        observer: Called as if the sweep were trained here; how many trials it has is how many it has planned so far.
        wait: Called with seconds between two looks.

    Raises:
        RtrainError: It is not a sweep, or its record is damaged.
    """
    record, told = load_record(folder), dict[str, str]()
    observer.sweep_started(record, len(record.trials))
    while True:
        goes_on = is_locked(folder)  # asked before reading, so that the last record is read
        now = load_record(folder)
        record.trials, record.goals, record.status = now.trials, now.goals, now.status
        for trial in record.trials:
            if told.get(trial.name) != trial.status:
                told[trial.name] = trial.status
                observer.trial_changed(trial)
        if not goes_on:
            break
        wait(POLL_SECONDS)
    if record.status != "running":
        observer.sweep_ended(record)
    return record.status != "running"
