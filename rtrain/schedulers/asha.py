"""Asynchronous successive halving: at lengths that grow by a factor, only the best part of the trials continues.

Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020), in the variant that stops
trials instead of promoting them, so that none ever waits for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.schedulers import base
from rtrain.schedulers.base import Stop, StoppingConf
from rtrain.searches.base import Objective


@dataclass(kw_only=True)
class Conf(StoppingConf):
    """Asynchronous successive halving."""

    reduction_factor: Annotated[float, Field(gt=1)] = 3.0
    """At each rung the best ``1 / reduction_factor`` of the trials that got there continue; rungs are at ``grace``,
    ``grace * reduction_factor``, and so on."""


class Scheduler(base.Scheduler):
    """Asynchronous successive halving."""

    Conf = Conf

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        super().__init__(conf, goal, axes, longest)
        self._rungs: dict[int, dict[int, float]] = {}
        """By the number of the rung, what each trial had there."""
        self._passed: dict[int, int] = {}
        """By trial, the number of rungs that it has passed."""

    def hear(self, trial: int, length: int, value: float) -> Stop | None:
        """Stop a trial that is not among the best at a rung that it reaches."""
        number = self._passed.get(trial, 0)
        decision: Stop | None = None
        while length >= self._length(number) and decision is None:
            decision = self._judge(trial, number, value)
            number += 1
        self._passed[trial] = number
        return decision

    def _length(self, number: int) -> float:
        return float(self.conf.grace * self.conf.reduction_factor**number)

    def _judge(self, trial: int, number: int, value: float) -> Stop | None:
        rung = self._rungs.setdefault(number, {})
        rung[trial] = value
        better = sum(self.goal.is_better(other, value) or value != value for other in rung.values())
        allowed = max(1, int(len(rung) / self.conf.reduction_factor))
        if value == value and better < allowed:
            return None
        where = f"{self.conf.unit[:-1]} {self._length(number):g}"
        return Stop(f"asha: {better} of {len(rung)} trials were better at {where}")
