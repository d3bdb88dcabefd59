"""The contract of a search: which trial comes next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rtrain.config.compose.search_space import Axis
from rtrain.config.needs import Need

Point = tuple[str, ...]
"""A value for each axis, in their order, as Hydra takes them."""

BEGINS = Need(
    met=lambda way: way.conf.sweep.num_startup_trials < way.conf.sweep.num_trials,
    otherwise="all trials are drawn at random before the search starts to learn",
    instead="Draw fewer, or raise the number of trials: sweep.num_trials",
    keys=("sweep.num_trials",),
)
"""For searches that learn from trials after some that are drawn."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What trials are judged by."""

    metric: str
    mode: str
    """``min`` or ``max``."""

    def is_better(self, value: float, other: float) -> bool:
        """Tell whether ``value`` is better than ``other``; NaN never is."""
        return value > other if self.mode == "max" else value < other


class Search(ABC):
    """Proposes the points of a space, one for each trial. A resumed sweep creates it again and passes the past results.

    Args:
        conf: Its section ``sweep``.
        axes: The varied keys.
        goals: The objectives; more than one for searches that can weigh them.
    """

    Conf: ClassVar[type]
    """Dataclass of the section ``sweep``; extends ``SweepConf``."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable."""
    extra: ClassVar[str | None] = None
    """The extra of rtrain that brings them."""
    adaptive: ClassVar[bool] = True
    """What it proposes depends on how earlier trials ended. If not, all trials are checked before the first starts."""
    many_goals: ClassVar[bool] = False
    """It can optimize several objectives together."""

    def __init__(self, conf: Any, axes: Sequence[Axis], goals: Sequence[Objective]) -> None:
        self.conf, self.axes, self.goals = conf, tuple(axes), tuple(goals)

    @property
    def num_trials(self) -> int:
        """The most trials that there will be: as the config says."""
        return int(self.conf.num_trials)

    @abstractmethod
    def propose(self, number: int) -> Point | None:
        """Return the point of a trial; None if there are no more.

        Args:
            number: Of the trial, counted from 0; of an adaptive search below ``num_trials``, and asked for again where
                a point was there before or is excluded.
        """

    def learn(self, point: Point, values: Sequence[float] | None) -> None:  # noqa: B027
        """Called with the result of a point; in a resumed sweep, for earlier points too. Only adaptive searches use it.

        Args:
            point: A proposed point, or one chosen elsewhere.
            values: For each goal, the value its trial reached; None if it failed, or was not tried: it is excluded, or
                was tried before, and its result passed on then.
        """
