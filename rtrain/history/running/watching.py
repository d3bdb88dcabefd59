"""Watch a run that another process trains, from what it writes into its run directory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Protocol

from rtrain.run_lines import is_milestone
from rtrain.runs.events import Event, events_file, newest_first, parse_line
from rtrain.runs.filesystem.lock import is_locked
from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.runs.manifest import read_manifest
from rtrain.runs.observer import Observer
from rtrain.runs.status import Status

MOST_BEFORE = 20
"""Reports of the time before that are shown, the latest ones."""
MOST_READ = 5_000
"""Reports among which they are looked for."""
BLOCK_BYTES = 1 << 16


class Watched(Protocol):
    """A run or a sweep to watch."""

    folder: Path
    """What it writes appears there."""
    poll_seconds: float
    """How long is waited when nothing new was written."""

    def goes_on(self) -> bool:
        """Tell whether a process works on it, having brought into the folder what it wrote so far."""


@dataclass
class WatchedHere:
    """A run or a sweep whose process writes into a folder that this machine has."""

    folder: Path
    poll_seconds: float = 0.3

    def goes_on(self) -> bool:
        """Tell whether a process holds the lock."""
        return is_locked(self.folder)


def watch(run: Watched, observer: Observer, wait: Callable[[float], None] = time.sleep) -> bool:
    """Show a run to an observer until it is over; return whether it could say how it ended.

    Args:
        run: The run.
        observer: Called as if the run were trained here, but for progress within epochs, which no file holds.
        wait: Called with seconds when nothing new was written.

    Raises:
        RtrainError: It is not a run directory.
    """
    run_dir = run.folder
    observer.started(run_dir, read_manifest(run_dir))
    path = events_file(run_dir)
    with open_inside(path.parent, path.name) as file:
        file.seek(0, os.SEEK_END)
        known = _before(run_dir)
        for event in known:
            observer.event(event)
        times = {event.time for event in known}  # what was written in between is read twice
        for event in _new(run, file, wait):
            if event.time not in times:
                observer.event(event)
    manifest = read_manifest(run_dir)
    if manifest.status != Status.RUNNING:
        observer.ended(run_dir, manifest)
    return manifest.status != Status.RUNNING


def _before(run_dir: Path) -> list[Event]:
    newest = islice(newest_first(events_file(run_dir)), MOST_READ)
    return list(islice(filter(is_milestone, newest), MOST_BEFORE))[::-1]


def _new(run: Watched, file: IO[bytes], wait: Callable[[float], None]) -> Iterator[Event]:
    """Yield reports as they are written, until no process works on the run."""
    begun = b""
    while True:
        goes_on = run.goes_on()  # checked before reading, so that the last lines are read too
        while block := file.read(BLOCK_BYTES):
            *lines, begun = (begun + block).split(b"\n")
            yield from (entry for line in lines if isinstance(entry := parse_line(line), Event))
        if not goes_on:
            return
        wait(run.poll_seconds)
