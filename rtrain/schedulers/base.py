"""The contract of a scheduler: which trials go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.config.value_types.texts import one_of
from rtrain.searches.base import Objective, Point


@dataclass(kw_only=True)
class SchedulerConf:
    """What all schedulers can be told."""

    unit: Annotated[str, *one_of("epochs", "steps")] = "epochs"
    """What the lengths below count: epochs (rounds of boosted trees), or optimizer steps."""


@dataclass(kw_only=True)
class StoppingConf(SchedulerConf):
    """What those can be told that stop trials."""

    grace: Annotated[int, Field(ge=1)] = 1
    """Length before which no trial is stopped."""


@dataclass(frozen=True)
class Stop:
    """The trial ends here."""

    reason: str
    """Begins with the scheduler's name and a colon."""


@dataclass(frozen=True)
class Pause:
    """The trial writes a checkpoint and makes room, until it is decided on again."""


@dataclass(frozen=True)
class GoOn:
    """A paused trial goes on from its checkpoint."""


@dataclass(frozen=True)
class Exploit:
    """A paused trial goes on from another one's newest checkpoint, with some values of its own."""

    source: int
    """Number of the other trial, which is paused too."""
    changes: Mapping[str, str]
    """What changes of its own values: by name of axis, as Hydra takes them."""


class Scheduler(ABC):
    """Looks at what trials report. It is made anew when a sweep goes on, and told of the past.

    Args:
        conf: Its section ``sweep.scheduler``.
        goal: What trials are judged by.
        axes: What is varied.
        longest: The length of a whole trial, in ``conf.unit``, if its config says it.
    """

    Conf: ClassVar[type]
    """Dataclass of the section; extends ``SchedulerConf``."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable."""
    extra: ClassVar[str | None] = None
    """The extra of rtrain that brings them."""
    pauses: ClassVar[bool] = False
    """Whether it pauses trials."""
    exploits: ClassVar[bool] = False
    """Whether trials go on from others' checkpoints, with other values."""

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        self.conf, self.goal, self.axes, self.longest = conf, goal, tuple(axes), longest

    def add(self, trial: int, point: Point) -> None:  # noqa: B027
        """Hear of a trial that there is, or will be, and of the values that it has now."""

    def complete(self) -> None:  # noqa: B027
        """Hear that there will be no more trials than have been added."""

    @abstractmethod
    def hear(self, trial: int, length: int, value: float) -> Stop | Pause | None:
        """Decide on a trial that reports; None: it goes on. What it reports after that is not heard until it goes on.

        Args:
            trial: Its number.
            length: How far it is, in ``conf.unit``; it grows from report to report.
            value: Of the goal's metric.
        """

    def next_pause(self, trial: int) -> int | None:
        """Return the length at which ``hear`` will pause a trial, if that is known: it then goes no step further."""
        return None

    def paused(self, trial: int) -> None:  # noqa: B027
        """Hear that a trial has a checkpoint and waits."""

    def decide_paused(self) -> tuple[int, GoOn | Exploit | Stop] | None:
        """Decide on one of the paused trials; None if there is nothing to decide as things are. Asked again and again.

        That a trial which a ``Stop`` is for has ended is not told again.
        """
        return None

    def exploited(self, trial: int, decision: Exploit) -> None:  # noqa: B027
        """Hear what it decided before, when a sweep goes on: between the reports before that and those after it."""

    def ended(self, trial: int) -> None:  # noqa: B027
        """Hear that a trial is over: it was trained to its end, was stopped, or failed."""
