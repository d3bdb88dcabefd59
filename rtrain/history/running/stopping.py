"""Ask a run that another process trains to save a checkpoint and end."""

from __future__ import annotations

import os
import platform
import shlex
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError
from rtrain.history.index import read_row
from rtrain.runs.filesystem.files import SWEEP
from rtrain.runs.filesystem.lock import end_asked, holder, is_locked
from rtrain.runs.manifest import MANIFEST
from rtrain.runs.status import Status


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The process that was asked to end."""

    folder: Path
    """Of the run or the sweep that it works on."""
    pid: int
    already: bool
    """It had been asked before, by whatever signal; it got no second one, which would end it immediately."""


def stop_run(folder: Path, kill: Callable[[int, int], None] = os.kill) -> list[Asked]:
    """Ask the process that works on a run or a sweep to end, unless it is already ending.

    Args:
        folder: The run directory, or the folder of the sweep.
        kill: Sends a signal to a process.

    Returns:
        That process; of a sweep that was killed, those that still train its trials.

    Raises:
        ConfigError: No process works on it, for it has ended say, or that runs on another machine, belongs to another
            user, or trains a trial, whose sweep would start the next one.
    """
    if (folder.parent / SWEEP).exists() and is_locked(folder.parent):
        stop = to_try(shlex.join(["rtrain", "runs", "stop", shown(folder.parent)]))
        raise ConfigError(f"{shown(folder)} is a trial of a sweep that is running.", stop)
    if (folder / SWEEP).exists() and not is_locked(folder):
        left = [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}")) if not path.parent.is_symlink()]
        if working := [run_dir for run_dir in left if is_locked(run_dir)]:
            return [_ask(run_dir, kill) for run_dir in working]
    return [_ask(folder, kill)]


def _ask(folder: Path, kill: Callable[[int, int], None]) -> Asked:
    found = holder(folder)
    if found is None:
        raise _not_running(folder)
    pid, host = found
    if host != platform.node():
        raise ConfigError(f"{shown(folder)} is running on {host}.", f"There: kill {pid}")
    if end_asked(folder) is not None:
        return Asked(folder=folder, pid=pid, already=True)
    try:
        kill(pid, signal.SIGTERM)  # one that was started in the background ignores SIGINT
    except PermissionError:
        raise ConfigError(f"process {pid}, which trains {shown(folder)}, belongs to another user.") from None
    return Asked(folder=folder, pid=pid, already=False)


def _not_running(folder: Path) -> ConfigError:
    """Return the error for a run that no process of this machine works on: how it ended, as far as that is known."""
    status = read_row(folder).status
    if status == Status.KILLED:
        resume = to_try(shlex.join(["rtrain", "resume", shown(folder)]))
        return ConfigError(f"{shown(folder)} has ended already: it was killed.", resume)
    if status == Status.RUNNING:
        return ConfigError(f"{shown(folder)} is not running on this machine.")
    return ConfigError(f"{shown(folder)} has ended already: {status}.")
