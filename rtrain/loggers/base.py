"""The contract of a logger, which sends the reports of runs to a tracker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from rtrain.runs.events import Event

CUT = " [cut short]"


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """What a tracker receives about a run before its metrics. Secrets are masked."""

    id: str
    """Name of the run directory, which no other run has."""
    name: str
    """``run.name``, which runs of the same config share."""
    folder: Path
    """The run directory."""
    started_at: str
    """When the run began, however often it was resumed: UTC, ISO 8601."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The resolved config, flat: ``trainer.optimizer.lr``. Values are numbers, truth values, texts, or None."""
    changed: Mapping[str, Any] = field(default_factory=dict)
    """The parameters that resumes of the run have changed, with their current values."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Where the run comes from: ``command``, ``run_dir``, ``trainer``, ``git_commit`` and the like."""
    tags: Sequence[str] = ()
    notes: str | None = None
    sweep: Path | None = None
    """The folder of the sweep that the run is a trial of."""


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """What a tracker has received of a run so far, from this process or earlier ones."""

    events: int = 0
    step: int = -1
    """The newest step; -1: none."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """What ``open`` returned last."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    status: str
    """``succeeded``, ``failed``, ``interrupted`` or ``preempted``."""
    reason: str | None
    ended_at: str
    """UTC, ISO 8601."""
    checkpoints: Mapping[str, Path] = field(default_factory=dict)
    """The folders of the checkpoints ``best`` and ``last``, where there are some."""


@dataclass(frozen=True, kw_only=True)
class SystemSample:
    """How busy the driver's machine is."""

    seconds: int
    """Since the run began, however often it was resumed."""
    values: Mapping[str, float]
    """By name, which begins with ``system/``: percent, or megabytes."""


class Logger(ABC):
    """Sends one run to a tracker. One thread of the driver calls all methods, never the thread that trains.

    The exception of a method is reported to the user once. Later a new instance is made, opened, and called again.

    Args:
        conf: Its keys, as the config has them below ``run.loggers``.
    """

    Conf: ClassVar[type]
    """Dataclass of its keys."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that must be importable."""
    extra: ClassVar[str | None] = None
    """The extra of rtrain that brings them."""

    def __init__(self, conf: Any) -> None:
        self.conf = conf

    @abstractmethod
    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Connect, and start the run at the tracker, or continue the one that ``delivered.ids`` names.

        Returns:
            What names the run at the tracker. Other ids than before: everything is sent again.
        """

    @abstractmethod
    def log(self, events: Sequence[Event]) -> None:
        """Send events, in their order. A tracker may receive the same events again if a process was killed."""

    def log_system(self, sample: SystemSample) -> None:  # noqa: B027 - some trackers measure by themselves
        """Send how busy the machine is, every ``run.system_metrics_seconds`` during the run."""

    def end(self, outcome: Outcome) -> None:  # noqa: B027 - not every tracker asks
        """Called when the run is over. It may still be resumed."""

    def close(self) -> None:  # noqa: B027
        """Release all resources; called in any case, also after failures."""


def cut(text: str, most: int) -> str:
    """Return a text that has at most ``most`` characters, marked where it was cut."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT
