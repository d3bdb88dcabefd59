"""Population based training: at intervals the worst trials continue from the best checkpoints, with changed values.

Source: Jaderberg et al., "Population based training of neural networks" (2017): truncation selection, perturbing and
resampling. All trials are a population; they wait for each other after each interval, so that there may be more of them
than fit in parallel, and the result does not depend on their speed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.config.value_types.numeric import is_number
from rtrain.schedulers import base
from rtrain.schedulers.base import Exploit, GoOn, Pause, SchedulerConf
from rtrain.searches.base import Objective, Point

FACTORS = (0.8, 1.2)


@dataclass(kw_only=True)
class Conf(SchedulerConf):
    """Population based training."""

    interval: Annotated[int, Field(ge=1)] = 5
    """Length after which trials are compared, again and again."""

    quantile: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """Part of the trials that is replaced by copies of as many of the best ones."""

    resample: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Probability that a copied value is drawn again. Otherwise numbers of an interval are multiplied by 0.8 or 1.2,
    numbers of a list become a neighbour in it, and other values stay."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of what is drawn."""


class Scheduler(base.Scheduler):
    """Population based training."""

    Conf = Conf
    pauses = True
    exploits = True

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        super().__init__(conf, goal, axes, longest)
        self._points: dict[int, Point] = {}
        """Values of each trial that is not over."""
        self._last: dict[int, tuple[int, float]] = {}
        """Length and value of the newest report of each."""
        self._waiting: set[int] = set()
        self._decided: list[tuple[int, GoOn | Exploit]] = []
        self._is_complete = False

    def add(self, trial: int, point: Point) -> None:
        """Take the trial into the population."""
        self._points[trial] = point

    def complete(self) -> None:
        """Know the population."""
        self._is_complete = True

    def hear(self, trial: int, length: int, value: float) -> Pause | None:
        """Pause a trial that reaches the end of an interval, unless that is the end of its training."""
        if length < self._last.get(trial, (0, 0.0))[0]:
            return None  # its checkpoint is from before the pause, and it reports the way there once more
        pause = self.next_pause(trial)
        self._last[trial] = length, value
        is_over = self.longest is not None and length >= self.longest
        return None if pause is None or is_over or length < pause else Pause()

    def next_pause(self, trial: int) -> int | None:
        """Return the end of the interval that the trial is in."""
        length = self._last.get(trial, (0, 0.0))[0]
        end = int((length // self.conf.interval + 1) * self.conf.interval)
        return None if self.longest is not None and end >= self.longest else end

    def paused(self, trial: int) -> None:
        """Have it wait for the others."""
        self._waiting.add(trial)

    def exploited(self, trial: int, decision: Exploit) -> None:
        """Give it the values and the place of the other one."""
        pairs = zip(self.axes, self._points[trial], strict=True)
        self._points[trial] = tuple(decision.changes.get(axis.name, text) for axis, text in pairs)
        self._last[trial] = self._last[decision.source]

    def ended(self, trial: int) -> None:
        """Wait for it no more."""
        self._points.pop(trial, None)

    def decide_paused(self) -> tuple[int, GoOn | Exploit] | None:
        """Once all trials wait, replace the worst, then continue all."""
        if self._is_complete and self._waiting and self._waiting >= set(self._points):
            self._decided += self._next_generation()
            self._waiting.clear()
        return self._decided.pop(0) if self._decided else None

    def _next_generation(self) -> list[tuple[int, GoOn | Exploit]]:
        """Return what becomes of each trial: those first that need checkpoints of others, which are still there."""
        ranked = sorted(self._waiting, key=lambda trial: (self._badness(trial), trial))
        num = min(len(ranked) // 2, max(1, int(len(ranked) * self.conf.quantile)))
        exploits = []
        for trial in ranked[len(ranked) - num :]:
            rng = random.Random(f"{self.conf.seed}/{trial}/{self._last[trial][0]}")
            source = rng.choice(ranked[:num])
            if self._badness(source) < self._badness(trial):
                exploits.append((trial, self._exploit(trial, source, rng)))
        replaced = {trial for trial, _ in exploits}
        return [*exploits, *((trial, GoOn()) for trial in ranked if trial not in replaced)]

    def _badness(self, trial: int) -> float:
        value = self._last[trial][1]
        return math.inf if math.isnan(value) else -value if self.goal.mode == "max" else value

    def _exploit(self, trial: int, source: int, rng: random.Random) -> Exploit:
        before, point = self._points[trial], self._explore(self._points[source], source, rng)
        self._points[trial], self._last[trial] = point, self._last[source]
        pairs = zip(self.axes, before, point, strict=True)
        return Exploit(source, {axis.name: new for axis, old, new in pairs if old != new})

    def _explore(self, point: Point, source: int, rng: random.Random) -> Point:
        """Return the values of a good trial, a little changed.

        Args:
            point: Its values.
            source: Its number.
            rng: Draws.
        """
        return tuple(
            axis.draw(rng) if rng.random() < self.conf.resample else perturbed(axis, text, rng)
            for axis, text in zip(self.axes, point, strict=True)
        )


def perturbed(axis: Axis, text: str, rng: random.Random) -> str:
    """Return a value near another one: 0.8 or 1.2 of a number, its neighbour in a list of numbers, else the same."""
    if axis.values:
        if axis.rows or not all(map(is_number, axis.values)):
            return text
        ordered = sorted(axis.values, key=float)
        place = ordered.index(text) + rng.choice((-1, 1))
        return ordered[min(max(place, 0), len(ordered) - 1)]
    number = float(text)
    new = number * rng.choice(FACTORS)
    if axis.is_int and round(new) == round(number):
        new = number + (1 if new > number else -1)
    return axis.text(min(max(new, axis.low), axis.high))
