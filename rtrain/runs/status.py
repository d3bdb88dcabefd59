"""How a run, a trial or a sweep stands."""

from __future__ import annotations

import platform
from enum import StrEnum
from pathlib import Path

from rtrain.errors import RtrainError
from rtrain.runs.filesystem.lock import is_locked


class Status(StrEnum):
    """``status`` of a manifest or of a sweep's record, its exit code, and the colour in which it is shown."""

    exit_code: int
    """Of a command whose run or sweep ended with it."""
    colour: str
    """A style of rich; empty: as the other text."""

    def __new__(cls, text: str, exit_code: int = 0, colour: str = "") -> Status:
        """Make a member, which is its text."""
        made = str.__new__(cls, text)
        made._value_, made.exit_code, made.colour = text, exit_code, colour
        return made

    PLANNED = "planned"
    RUNNING = "running", 0, "cyan"
    PAUSED = "paused"
    """By the scheduler, which may have it train on."""
    SUCCEEDED = "succeeded", 0, "green"
    STOPPED = "stopped"
    """By the scheduler: other trials are better."""
    FAILED = "failed", 1, "red"
    INTERRUPTED = "interrupted", 130, "yellow"
    PREEMPTED = "preempted", 143, "yellow"
    KILLED = "killed", 1, "magenta"
    """The record says ``running``, but the process is gone; shown, never written."""
    DAMAGED = "damaged", 1, "red"
    """Its record can't be read; shown, never written."""


STYLES = {one.value: one.colour for one in Status}
UNFINISHED = (Status.PLANNED, Status.RUNNING, Status.PAUSED)
TRIAL_OVER = (Status.SUCCEEDED, Status.STOPPED, Status.FAILED)
"""Statuses of trials that are not trained again when the sweep is resumed."""
SIGNALLED = (Status.INTERRUPTED, Status.PREEMPTED)
"""Ended by a signal, or asked to end: no time for a last evaluation."""
WITH_RESULT = (Status.SUCCEEDED, Status.STOPPED)


def is_killed(run_dir: Path, host: object) -> bool:
    """Return whether no process writes a run any more that says it is running; only its own machine knows.

    Args:
        run_dir: The run.
        host: The name of its machine; None: it is not known.
    """
    try:
        return host in (None, platform.node()) and not is_locked(run_dir)
    except (OSError, RtrainError):  # another account's lock, which can't be read
        return False
