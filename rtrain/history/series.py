"""How metrics developed: the points of each one, and fewer points that show the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from rtrain.errors import RtrainError
from rtrain.runs.events import events_file, newest_first

MOST_EVENTS = 200_000
"""Events of a run that are looked at, the newest ones."""
Points = list[tuple[int, float]]
"""Steps and values, oldest first; NaN where the value was no number."""


def read_series(run_dir: Path) -> dict[str, Points]:
    """Return the points of each metric of a run; of a run without readable events, none."""
    found: dict[str, Points] = {}
    try:
        events = list(islice(newest_first(events_file(run_dir)), MOST_EVENTS))
    except (OSError, RtrainError):
        return {}
    for event in reversed(events):
        for name, value in event.metrics.items():
            found.setdefault(name, []).append((event.step, math.nan if value is None else value))
    return found


def binned(points: Sequence[tuple[int, float]], first: int, last: int, num_bins: int) -> list[float]:
    """Return the mean value of each part of the steps from ``first`` to ``last``; NaN for those without values."""
    sums, counts = [0.0] * num_bins, [0] * num_bins
    for step, value in points:
        if math.isfinite(value) and first <= step <= last:
            at = min(num_bins - 1, (step - first) * num_bins // max(1, last - first))
            sums[at] += value
            counts[at] += 1
    return [total / count if count else math.nan for total, count in zip(sums, counts, strict=True)]
