"""The contract of ``run.callbacks``: what is called on the driver during a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, Literal

from rtrain.callback_methods import is_never_called, meant_methods, own_methods, public_methods, takes
from rtrain.config.did_you_mean import did_you_mean, there_are
from rtrain.config.targets.suspended import why_suspended
from rtrain.errors import ConfigError
from rtrain.loggers.base import LoggedRun, Outcome
from rtrain.runs.events import Event

ON_ERROR = ("fail", "warn")


@dataclass(frozen=True, kw_only=True)
class SavedCheckpoint:
    """A checkpoint that is complete."""

    name: str
    folder: Path
    step: int
    epoch: int
    metrics: Mapping[str, float | None]
    """The latest value of each metric when it was saved."""
    is_best: bool
    """Whether it is the best one so far."""


@dataclass(frozen=True, kw_only=True)
class FailedAttempt:
    """An attempt that ended before its time; the run starts again unless it has failed too often."""

    number: int
    """1 for the first one."""
    kind: str
    """``exception``, ``worker died``, ``out of memory``, ...: a ``rtrain.runs.records.FailureKind``."""
    message: str
    rank: int | None


class Callback:
    """Called on the driver during a run. Override the methods that you need.

    One thread calls all methods of a callback, in the order in which things happened, up to a second later: training
    does not wait for them. An exception ends the run as failed, unless ``on_error`` is ``warn``.
    """

    on_error: Literal["fail", "warn"] = "fail"
    """``warn``: an exception is a notice, once, and the run continues."""

    def started(self, run: LoggedRun) -> None:
        """Called when the run directory has been created, or a run is resumed."""

    def event(self, event: Event) -> None:
        """Called for each report of metrics; evaluations are reported too."""

    def evaluated(self, event: Event) -> None:
        """Called after ``event`` for a report that has metrics of an evaluated split: ``val/...`` or ``test/...``."""

    def checkpoint(self, checkpoint: SavedCheckpoint) -> None:
        """Called when a checkpoint is complete. It may have been removed again by ``run.checkpoint.keep``."""

    def attempt_failed(self, attempt: FailedAttempt) -> None:
        """Called when workers failed, before they start again."""

    def ended(self, outcome: Outcome) -> None:
        """Called when the run is over, however it ended. An exception here is a notice."""


def check_callback(where: str, node: Mapping[str, Any], kind: type, contract: type, on_error: Any) -> None:
    """Refuse a callback whose ``on_error`` is unknown, or with a method whose lines would never run.

    That is one whose name is that of a called one in other words, a generator, or an ``async def``; and one that
    doesn't take the arguments that it is called with.

    Args:
        where: Its key.
        node: Its config.
        kind: Its class.
        contract: The class whose methods are called: ``Callback``, ``WorkerCallback``.
        on_error: What it has.
    """
    if on_error not in ON_ERROR:
        what = f"{where}: {node['_target_']} has on_error={on_error!r}"
        raise ConfigError(f"{what}, not one of {', '.join(ON_ERROR)}.")
    called = public_methods(contract)
    for name in own_methods(kind, contract):
        if name not in called and is_never_called(name, kind, contract):
            meant = meant_methods(name, called)
            raise ConfigError(
                f"{where}: nothing calls the method {name} of {node['_target_']}.",
                f"{did_you_mean(*meant) if meant else there_are(called)}\nMethods for your own use may begin with _.",
            )
        if name in called and (why := why_suspended(getattr(kind, name))):
            raise ConfigError(f"{where}: the method {name} of {node['_target_']} {why}: calling it does nothing.")
        if name in called and not takes(getattr(kind, name), getattr(contract, name)):
            line = f"def {name}({', '.join(signature(getattr(contract, name)).parameters)}):"
            message = f"{where}: the method {name} of {node['_target_']} doesn't take the arguments of its call."
            raise ConfigError(message, f"Define it as {line}")
