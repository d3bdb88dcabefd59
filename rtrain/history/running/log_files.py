"""The logs of a run, also while it is in progress."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from rtrain.config.did_you_mean import there_are
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError, RtrainError
from rtrain.runs.filesystem.lock import is_locked
from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.runs.manifest import read_manifest

DRIVER = "driver.log"
POLL_SECONDS = 0.3
BLOCK_BYTES = 1 << 16
_WORKER = re.compile(r"worker-(\d+)\.log")


def log_name(run_dir: Path, rank: int | None) -> str:
    """Return the name of a log below a run directory. A worker that has printed nothing has no file yet.

    Args:
        run_dir: The run directory.
        rank: Of a worker; None for the driver.

    Raises:
        ConfigError: The run has no such log, and no such worker; names those that exist.
    """
    name = DRIVER if rank is None else f"worker-{rank}.log"
    folder = run_dir / "logs"
    if not (folder / name).is_file() and str(rank) not in _workers(run_dir):
        ranks = sorted(int(match[1]) for path in folder.glob("*") if (match := _WORKER.fullmatch(path.name)))
        words = [f"--rank {one}" for one in ranks]
        raise ConfigError(
            f"{shown(folder)} has no {name}.", there_are(words) if words else "No worker has printed anything."
        )
    return f"logs/{name}"


def _workers(run_dir: Path) -> Collection[str]:
    try:
        return read_manifest(run_dir).workers
    except RtrainError:  # a damaged manifest names none
        return ()


def last_lines(run_dir: Path, name: str, most: int | None = None) -> Iterator[str]:
    """Yield the lines of a log, without their ends; with ``most``, the last ones alone."""
    if not os.path.lexists(run_dir / name):
        return
    with open_inside(run_dir, name, "r", encoding="utf-8", errors="replace") as file:
        lines = (line.rstrip("\n") for line in file)
        yield from lines if most is None else deque(lines, most)


def followed(
    run_dir: Path, name: str, most: int | None = None, wait: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """Yield the lines of a log as they are written, until the run is over.

    Args:
        run_dir: The run directory.
        name: Of the log below it.
        most: How many of the lines that exist are yielded first; None: all of them.
        wait: Called with seconds when nothing new was written.
    """
    while not os.path.lexists(run_dir / name):
        if not is_locked(run_dir):
            return
        wait(POLL_SECONDS)
    with open_inside(run_dir, name, "r", encoding="utf-8", errors="replace") as file:
        yield from deque((line.rstrip("\n") for line in file), most)
        begun = ""
        while True:
            goes_on = is_locked(run_dir)  # checked before reading, so that the last lines are read too
            while text := file.read(BLOCK_BYTES):
                *lines, begun = (begun + text).split("\n")
                yield from lines
            if not goes_on:
                break
            wait(POLL_SECONDS)
        if begun:
            yield begun
