"""Different points drawn at random, one after the other: more of them begin with the same ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.config.sweep_conf import SweepConf
from rtrain.searches import base
from rtrain.searches.base import Objective, Point

MAX_TRIES = 1000
"""Draws in a row that bring nothing new, after which there are taken to be no more points."""


@dataclass(kw_only=True)
class Conf(SweepConf):
    """Points drawn at random."""

    num_trials: Annotated[int, Field(ge=1)] = 20
    """Number of trials. If raised later, the command resumes the same sweep."""


class Search(base.Search):
    """Points drawn at random."""

    Conf = Conf
    adaptive = False
    many_goals = True

    def __init__(self, conf: Any, axes: Sequence[Axis], goals: Sequence[Objective]) -> None:
        super().__init__(conf, axes, goals)
        self._points: list[Point] = []
        self._seen: set[Point] = set()
        self._num_drawn = 0

    def propose(self, number: int) -> Point | None:
        """Return a point that no trial before has; None where all, or nearly all, have been drawn."""
        if number >= self.num_trials:
            return None
        for _ in range(MAX_TRIES):
            if len(self._points) > number:
                return self._points[number]
            rng = random.Random(f"{self.conf.seed}/{self._num_drawn}")
            self._num_drawn += 1
            point = tuple(axis.draw(rng) for axis in self.axes)
            if point not in self._seen:
                self._seen.add(point)
                self._points.append(point)
        return None
