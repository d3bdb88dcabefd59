"""Trials that differ in their seed, or in which rows measure them, and in nothing else: what they reach on average."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from rtrain.runs.status import Status
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial

_NAMES = re.compile(r"(?:^|[._])(?:seed|random_state|(?<!n_)(?<!num_)fold)$", re.IGNORECASE)
"""What repeats a trial is called so; a longer name ends with it: ``data_seed``."""
SPLIT = "dataset.split.by_column"
"""A column of folds, say, whose values in turn are the rows that measure."""


@dataclass(frozen=True)
class Repetitions:
    """Trials with the same parameters."""

    params: dict[str, str]
    """Values by key, without the keys that repeat."""
    values: list[list[float]]
    """What each trial reached, by goal."""

    @property
    def means(self) -> list[float]:
        """The mean over the trials, by goal."""
        return [fmean(column) for column in zip(*self.values, strict=True)]

    @property
    def deviations(self) -> list[float | None]:
        """The standard deviation of a sample, by goal; None for one trial."""
        return [stdev(column) if len(column) > 1 else None for column in zip(*self.values, strict=True)]


def repeating_keys(trials: Iterable[Trial]) -> list[str]:
    """Return the keys that vary between trials to repeat them: seeds, folds and the column of a split."""
    keys = dict.fromkeys(key for one in trials for key in one.params)
    return [key for key in keys if key.startswith(SPLIT) or _NAMES.search(key)]


def repetitions(record: SweepRecord) -> list[Repetitions]:
    """Return the repeated trials of a sweep that trained to their end, the best mean first; nothing if none is.

    Those of which some have failed, say, come last: the others may be the lucky ones.
    """
    repeating = repeating_keys(record.trials)
    found: dict[tuple[tuple[str, str], ...], Repetitions] = {}
    for one in record.trials:
        if one.status == Status.SUCCEEDED and one.values is not None and all(map(math.isfinite, one.values)):
            params = {key: value for key, value in one.params.items() if key not in repeating}
            found.setdefault(tuple(sorted(params.items())), Repetitions(params, [])).values.append(one.values)
    most = max((len(one.values) for one in found.values()), default=0)
    if most < 2:
        return []
    sign = -1 if record.goals[0].mode == "max" else 1
    return sorted(found.values(), key=lambda one: (len(one.values) < most, sign * one.means[0]))
