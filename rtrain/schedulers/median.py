"""A trial is stopped whose best value is worse than the median of what the others had had on average by then.

Source: Golovin et al., "Google Vizier: A service for black-box optimization" (KDD 2017), section 3.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Annotated, Any

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.schedulers import base
from rtrain.schedulers.base import Stop, StoppingConf
from rtrain.searches.base import Objective
from rtrain.text.numbers import number_text


@dataclass(kw_only=True)
class Conf(StoppingConf):
    """The median stopping rule."""

    min_trials: Annotated[int, Field(ge=1)] = 3
    """Number of other trials that must have come as far for one to be stopped."""


class Scheduler(base.Scheduler):
    """The median stopping rule."""

    Conf = Conf

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        super().__init__(conf, goal, axes, longest)
        self._heard: dict[int, list[tuple[int, float]]] = {}
        """By trial, its reports: length and value. Values that are not numbers are left out."""

    def hear(self, trial: int, length: int, value: float) -> Stop | None:
        """Compare the trial's best value with the others' averages."""
        own = self._heard.setdefault(trial, [])
        if not math.isnan(value):
            own.append((length, value))
        averages = [self._average(other, length) for number, other in self._heard.items() if number != trial]
        known = [one for one in averages if one is not None]
        if not own or length < self.conf.grace or len(known) < self.conf.min_trials:
            return None
        values = [one for _, one in own]
        best, middle = max(values) if self.goal.mode == "max" else min(values), median(known)
        if not self.goal.is_better(middle, best):
            return None
        return Stop(
            f"median: {number_text(best)} at {self.conf.unit[:-1]} {length} is worse than {number_text(middle)} of "
            "the others"
        )

    @staticmethod
    def _average(reports: list[tuple[int, float]], length: int) -> float | None:
        """Return the average up to a length; None for a trial that has not come as far."""
        if not reports or reports[-1][0] < length:
            return None
        return fmean(value for there, value in reports if there <= length) if reports[0][0] <= length else None
