"""Every combination, in the order of the command line: the last axis varies fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rtrain.config.compose.search_space import MAX_POINTS, Axis
from rtrain.config.needs import Need, Rules
from rtrain.config.sweep_conf import SweepConf
from rtrain.errors import ConfigError
from rtrain.searches import base
from rtrain.searches.base import Objective, Point

DRAWN = Need(
    met=lambda way: False,
    otherwise="a grid draws nothing at random",
    instead="The seed of the trials is run.seed; to draw values: sweep=random",
    keys=("sweep", "sweep.type"),
    portable=True,
)


@dataclass(kw_only=True)
class Conf(SweepConf):
    """Every combination of the values."""

    needs: ClassVar[Rules] = (*SweepConf.needs, DRAWN.of("seed"))


class Search(base.Search):
    """Every combination of the values."""

    Conf = Conf
    adaptive = False
    many_goals = True

    def __init__(self, conf: Any, axes: Sequence[Axis], goals: Sequence[Objective]) -> None:
        super().__init__(conf, axes, goals)
        for axis in axes:
            if not axis.values:
                raise ConfigError(
                    f"{axis.name}: a grid can't contain every number of an interval.",
                    "List the values: 0.1,0.01 or range(1,4). Or draw them: sweep=random sweep.num_trials=20",
                )
        if self.num_trials > MAX_POINTS:
            told = " x ".join(f"{axis.name} ({len(axis.values):,} values)" for axis in axes)
            raise ConfigError(
                f"the grid of {told} has {self.num_trials:,} trials; the maximum is {MAX_POINTS:,}.",
                "Draw some of them: sweep=random sweep.num_trials=20",
            )

    @property
    def num_trials(self) -> int:
        """The number of combinations."""
        return math.prod(len(axis.values) for axis in self.axes)

    def propose(self, number: int) -> Point | None:
        """Return the combination of that number."""
        if number >= self.num_trials:
            return None
        point: list[str] = []
        for axis in reversed(self.axes):
            number, index = divmod(number, len(axis.values))
            point.append(axis.values[index])
        return tuple(reversed(point))
