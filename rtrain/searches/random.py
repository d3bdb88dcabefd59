"""Points drawn at random, each by the seed and its number alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rtrain.config.sweep_conf import SweepConf
from rtrain.searches import base
from rtrain.searches.base import Point


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

    @property
    def num_trials(self) -> int:
        """As the config says."""
        return int(self.conf.num_trials)

    def propose(self, number: int) -> Point | None:
        """Draw a point."""
        if number >= self.num_trials:
            return None
        rng = random.Random(f"{self.conf.seed}/{number}")
        return tuple(axis.draw(rng) for axis in self.axes)
