"""Successive halving in brackets: many trials that are short at first, and few that are long from the beginning.

Source: Li et al., "Hyperband: A novel bandit-based approach to hyperparameter optimization" (JMLR 2018), algorithm 1.
A bracket's trials wait at each rung, with a checkpoint, until all of them have arrived. Then the best ones continue,
and the others are stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.errors import ConfigError
from rtrain.schedulers import base
from rtrain.schedulers.base import GoOn, Pause, Stop, StoppingConf
from rtrain.searches.base import Objective, Point


@dataclass(kw_only=True)
class Conf(StoppingConf):
    """Successive halving in brackets. ``grace`` is the first rung of the bracket with the most trials."""

    max_length: Annotated[int, Field(ge=2)] | None = None
    """Length of a whole trial; null: ``trainer.max_epochs``, ``num_boost_round`` or ``max_steps``."""

    reduction_factor: Annotated[float, Field(gt=1)] = 3.0
    """At each rung the best ``1 / reduction_factor`` of a bracket continue. The next rung is that many times as far."""


class Bracket:
    """Trials that compete with each other.

    Args:
        size: How many trials it takes.
        rungs: Lengths at which they are compared.
        factor: The part of them that continues after each is 1 / factor.
    """

    def __init__(self, size: int, rungs: Sequence[float], factor: float) -> None:
        self.size, self.rungs, self._factor = size, tuple(rungs), factor
        self.trials: list[int] = []
        self.values: list[dict[int, float]] = [{} for _ in self.rungs]
        """By rung, what each trial had there."""
        self.ended: set[int] = set()

    def reached(self, trial: int) -> int:
        """Return how many rungs a trial has passed."""
        return sum(trial in values for values in self.values)

    def promoted(self, rung: int, goal: Objective) -> list[int] | None:
        """Return the trials that continue after a rung; None while some have not reached it."""
        expected = self.trials if rung == 0 else self.promoted(rung - 1, goal)
        there = self.values[rung]
        if expected is None or any(one not in there and one not in self.ended for one in expected):
            return None
        num = max(1, int(len(self.trials) / self._factor ** (rung + 1)))
        return sorted(there, key=lambda trial: _rank(there[trial], goal))[:num]


class Scheduler(base.Scheduler):
    """Successive halving in brackets."""

    Conf = Conf
    pauses = True

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        super().__init__(conf, goal, axes, longest)
        length = conf.max_length or longest
        if length is None:
            raise ConfigError(
                f"sweep.scheduler.max_length: the trainer's config does not say how many {conf.unit} a trial takes.",
                "sweep.scheduler.max_length=27",
            )
        self._shapes = bracket_shapes(length, conf.grace, conf.reduction_factor)
        self._brackets: list[Bracket] = []
        self._of: dict[int, Bracket] = {}
        self._waiting: list[int] = []
        self._is_complete = False

    def add(self, trial: int, point: Point) -> None:
        """Put the trial into the bracket that is being filled."""
        if trial in self._of:
            self._of[trial].ended.discard(trial)  # it failed, and is tried again
            return
        if not self._brackets or len(self._brackets[-1].trials) == self._brackets[-1].size:
            size, rungs = self._shapes[len(self._brackets) % len(self._shapes)]
            self._brackets.append(Bracket(size, rungs, self.conf.reduction_factor))
        self._brackets[-1].trials.append(trial)
        self._of[trial] = self._brackets[-1]

    def complete(self) -> None:
        """Take the last bracket for full."""
        self._is_complete = True

    def hear(self, trial: int, length: int, value: float) -> Pause | None:
        """Pause a trial that reaches the next rung."""
        bracket = self._of[trial]
        rung = bracket.reached(trial)
        if rung == len(bracket.rungs) or length < bracket.rungs[rung]:
            return None
        bracket.values[rung][trial] = value
        return Pause()

    def next_pause(self, trial: int) -> int | None:
        """Return the next rung."""
        bracket = self._of[trial]
        rung = bracket.reached(trial)
        return None if rung == len(bracket.rungs) else math.ceil(bracket.rungs[rung])

    def paused(self, trial: int) -> None:
        """Have it wait for the others."""
        self._waiting.append(trial)

    def decide_paused(self) -> tuple[int, GoOn | Stop] | None:
        """Once all have reached a rung, continue its best trials and stop the others."""
        for trial in self._waiting:
            bracket = self._of[trial]
            rung = bracket.reached(trial) - 1
            is_full = self._is_complete or len(bracket.trials) == bracket.size
            going = bracket.promoted(rung, self.goal) if is_full and rung >= 0 else []
            if rung < 0 or (going and trial in going):
                self._waiting.remove(trial)
                return trial, GoOn()
            if going:
                self._waiting.remove(trial)
                bracket.ended.add(trial)
                where = f"{self.conf.unit[:-1]} {bracket.rungs[rung]:g}"
                return trial, Stop(f"hyperband: not among the best {len(going)} at {where}")
        return None

    def ended(self, trial: int) -> None:
        """Wait for it no more."""
        self._of[trial].ended.add(trial)


def bracket_shapes(longest: float, grace: float, factor: float) -> list[tuple[int, list[float]]]:
    """Return size and rungs of each bracket, the one with the most trials first.

    With 27, 1 and 3: 27 trials with rungs at 1, 3 and 9; 12 with rungs at 3 and 9; 6 with one at 9; 4 without.
    """
    most = max(0, int(math.log(longest / grace) / math.log(factor) + 1e-9))
    shapes = []
    for steps in range(most, -1, -1):
        size = math.ceil((most + 1) / (steps + 1) * factor**steps - 1e-9)
        shapes.append((size, [longest / factor**left for left in range(steps, 0, -1)]))
    return shapes


def _rank(value: float, goal: Objective) -> float:
    """Return a number that is the smaller the better; no number is worse than any."""
    return math.inf if math.isnan(value) else -value if goal.mode == "max" else value
