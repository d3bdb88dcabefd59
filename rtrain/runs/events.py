"""The event stream of a run: one JSON line per report, appended while the run goes on.

A run that goes on from a checkpoint notes the step of it in a line of its own, ``{"from_step": 120, ...}``: what was
reported beyond that step before is done again and reported again.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from rtrain.runs.files import to_json
from rtrain.runs.manifest import utc_now


@dataclass(frozen=True, kw_only=True)
class Event:
    """One report of a trainer."""

    step: int
    """Optimizer steps (boosting rounds) done."""
    epoch: int
    time: str
    """UTC, ISO 8601."""
    metrics: Mapping[str, float | None]
    """Values by name; None for what was NaN or infinite, once it is read back."""

    @classmethod
    def at(cls, timestamp: float, *, step: int, epoch: int, metrics: Mapping[str, float]) -> Event:
        """Make an event that happened at ``timestamp`` (seconds since 1970)."""
        time = datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
        return cls(step=step, epoch=epoch, time=time, metrics=dict(metrics))


class EventLog:
    """Appends events to ``events.jsonl``; each line is written at once, so that a reader never waits for a buffer."""

    def __init__(self, path: Path) -> None:
        _drop_torn_line(path)
        self._file: TextIO = path.open("a", encoding="utf-8", buffering=1)

    def append(self, event: Event) -> None:
        """Add one line; NaN and infinity become null."""
        self._file.write(to_json(asdict(event)) + "\n")

    def go_back(self, step: int) -> None:
        """Note that training goes on from a step: later ones that are there already come again."""
        self._file.write(to_json({"from_step": step, "time": utc_now()}) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def events_file(folder: Path) -> Path:
    """Return the file of events of a run directory, or those of a checkpoint since the one before."""
    return folder / "events.jsonl"


def write_events(path: Path, events: Iterable[Event]) -> None:
    """Write a file of events."""
    log = EventLog(path)
    for event in events:
        log.append(event)
    log.close()


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a run that is over or still going on, oldest first, each step as it was done last.

    A line that is being written is left for later, and one that was torn by a crash left out.
    """
    return reversed(list(_newest_first(path)))


def _newest_first(path: Path) -> Iterator[Event]:
    before = math.inf
    for line in reversed(_whole_lines(path)):
        if "from_step" in line:
            before = min(before, line["from_step"])
        elif line["step"] <= before:
            yield Event(**line)


def _drop_torn_line(path: Path) -> None:
    """Cut off what a killed process had begun to write."""
    if path.exists():
        with path.open("r+b") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found
