"""Ask a run that another process trains to save a checkpoint and end."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError
from rtrain.history.places import SWEEP
from rtrain.runs.filesystem.lock import holder, is_locked

POLL_SECONDS = 0.2


def stop_run(folder: Path, kill: Callable[[int, int], None] = os.kill) -> int:
    """Ask the process that works on a run or a sweep to end, and return its number.

    Args:
        folder: The run directory, or the folder of the sweep.
        kill: Sends a signal to a process.

    Raises:
        ConfigError: No process works on it, or it runs on another machine, belongs to another user, or trains a
            trial, whose sweep would start the next one.
    """
    if (folder.parent / SWEEP).exists() and is_locked(folder.parent):
        stop = to_try(shlex.join(["rtrain", "runs", "stop", shown(folder.parent)]))
        raise ConfigError(f"{shown(folder)} is a trial of a sweep that is running.", stop)
    found = holder(folder)
    if found is None:
        raise ConfigError(f"{shown(folder)} is not running on this machine.")
    pid, host = found
    if host != platform.node():
        raise ConfigError(f"{shown(folder)} is running on {host}.", f"There: kill {pid}")
    try:
        kill(pid, signal.SIGTERM)  # one that was started in the background ignores SIGINT
    except PermissionError:
        raise ConfigError(f"process {pid}, which trains {shown(folder)}, belongs to another user.") from None
    return pid


def wait_until_free(folder: Path, wait: Callable[[float], None] = time.sleep) -> None:
    """Return when no process works on a run or a sweep any more."""
    while is_locked(folder):
        wait(POLL_SECONDS)
