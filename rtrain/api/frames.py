"""Runs and sweeps as tables of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from rtrain.runs.events import Event, named_apart

if TYPE_CHECKING:
    from rtrain.api.sweep_result import TrialResult


def events_frame(events: Iterable[Event]) -> pd.DataFrame:
    """Return a row for each event: ``step``, ``epoch``, ``time`` (UTC), and a column for each metric and value.

    A report that lacks a metric has NaN there. A metric that is called like one of these three is ``reported/NAME``.
    """
    rows = [
        {
            **(place := {"step": one.step, "epoch": one.epoch, "time": one.time}),
            **named_apart({**one.values, **one.metrics}, place),
        }
        for one in events
    ]
    metrics = dict.fromkeys(name for row in rows for name in row)
    frame = pd.DataFrame(rows, columns=list(dict.fromkeys(("step", "epoch", "time", *metrics))))
    frame["time"] = pd.to_datetime(frame["time"], utc=True, format="ISO8601")
    return frame


def trials_frame(trials: Sequence[TrialResult]) -> pd.DataFrame:
    """Return a row for each trial of a sweep, indexed by its number; see ``SweepResult.frame``."""
    first, last = ["number", "status"], ["epoch", "seconds", "error", "path"]
    rows = [
        {
            "number": one.number,
            "status": one.status,
            **named_apart({**one.params, **one.values}, (*first, *last)),
            "epoch": one.epoch,
            "seconds": one.seconds,
            "error": one.error,
            "path": str(one.path),
        }
        for one in trials
    ]
    varied = dict.fromkeys(name for row in rows for name in row if name not in (*first, *last))
    return pd.DataFrame(rows, columns=[*first, *varied, *last]).set_index("number")
