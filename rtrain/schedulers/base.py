"""The contract of a scheduler: which trials go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.schema import one_of
from rtrain.searches.base import Goal


@dataclass(kw_only=True)
class SchedulerConf:
    """What all schedulers can be told."""

    unit: Annotated[str, *one_of("epochs", "steps")] = "epochs"
    """What the lengths below count: epochs (rounds of boosted trees), or optimizer steps."""

    grace: Annotated[int, Field(ge=1)] = 1
    """Length before which no trial is stopped."""


@dataclass(frozen=True)
class Stop:
    """The trial ends here."""

    reason: str


@dataclass(frozen=True)
class Pause:
    """The trial writes a checkpoint and makes room; it may go on later."""


@dataclass(frozen=True)
class Exploit:
    """The trial goes on from another one's newest checkpoint, with some values of its own."""

    source: int
    """Number of the other trial."""
    changes: Mapping[str, str]
    """Values by name of axis, as Hydra takes them."""


Decision = Stop | Pause | Exploit | None
"""None: the trial goes on."""


class Scheduler(ABC):
    """Looks at what trials report. It is made anew when a sweep goes on, and told of the past.

    Args:
        conf: Its section ``sweep.scheduler``.
        goal: What trials are judged by.
    """

    Conf: ClassVar[type]
    """Dataclass of the section; extends ``SchedulerConf``."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable."""
    extra: ClassVar[str | None] = None
    """The extra of rtrain that brings them."""

    def __init__(self, conf: Any, goal: Goal) -> None:
        self.conf, self.goal = conf, goal

    @abstractmethod
    def hear(self, trial: int, length: int, value: float) -> Decision:
        """Decide on a trial that reports.

        Args:
            trial: Its number.
            length: How far it is, in ``conf.unit``; it grows from report to report.
            value: Of the goal's metric.
        """

    def ended(self, trial: int) -> None:  # noqa: B027
        """Hear that a trial is over: it was trained to its end, was stopped, or failed."""

    def next_paused(self) -> int | None:
        """Return the number of a paused trial that goes on now that there is room; None for none."""
        return None
