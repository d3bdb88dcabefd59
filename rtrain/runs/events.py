"""The event stream of a run: one JSON line per report, appended while the run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from rtrain.runs.files import to_json


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
        self._file: TextIO = path.open("a", encoding="utf-8", buffering=1)

    def append(self, event: Event) -> None:
        """Add one line; NaN and infinity become null."""
        self._file.write(to_json(asdict(event)) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a run that is over or still going on; a line that is being written is left for later."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield Event(**json.loads(line))
