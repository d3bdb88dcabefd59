"""The contract of a scheduler: which trials continue."""

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
    """Settings of all schedulers."""

    unit: Annotated[str, *one_of("epochs", "steps")] = "epochs"
    """What the lengths below count: epochs (rounds of boosted trees), or optimizer steps."""


@dataclass(kw_only=True)
class StoppingConf(SchedulerConf):
    """Settings of schedulers that stop trials."""

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
    """A paused trial resumes from its checkpoint."""


@dataclass(frozen=True)
class Exploit:
    """A paused trial resumes from another trial's newest checkpoint, with some values changed."""

    source: int
    """Number of the other trial, which is paused too."""
    changes: Mapping[str, str]
    """The trial's changed values, by name of axis, in Hydra's syntax."""


class Scheduler(ABC):
    """Decides by the reports of trials. When a sweep resumes, a new one is created and receives the earlier reports.

    Args:
        conf: Its section ``sweep.scheduler``.
        goal: The metric by which trials are judged.
        axes: The varied keys.
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
    """Whether trials continue from others' checkpoints, with other values."""

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        self.conf, self.goal, self.axes, self.longest = conf, goal, tuple(axes), longest

    def add(self, trial: int, point: Point) -> None:  # noqa: B027
        """Called with a trial that exists, or will exist, and its current values."""

    def complete(self) -> None:  # noqa: B027
        """Called when all trials have been added."""

    @abstractmethod
    def hear(self, trial: int, length: int, value: float) -> Stop | Pause | None:
        """Decide on a trial that reports; None: it continues. Later reports are ignored until the trial resumes.

        Args:
            trial: Its number.
            length: How far it is, in ``conf.unit``; it grows from report to report.
            value: Of the goal's metric.
        """

    def next_pause(self, trial: int) -> int | None:
        """Return the length at which ``hear`` will pause a trial, if that is known: it then trains no step more."""
        return None

    def paused(self, trial: int) -> None:  # noqa: B027
        """Called when a trial has a checkpoint and waits."""

    def decide_paused(self) -> tuple[int, GoOn | Exploit | Stop] | None:
        """Decide on one of the paused trials; None if there is nothing to decide as things are. Asked again and again.

        That a trial which a ``Stop`` is for has ended is not told again.
        """
        return None

    def exploited(self, trial: int, decision: Exploit) -> None:  # noqa: B027
        """Called with an earlier decision when a sweep resumes: between the reports before it and those after it."""

    def ended(self, trial: int) -> None:  # noqa: B027
        """Called when a trial has ended: it was trained to its end, was stopped, or failed."""
