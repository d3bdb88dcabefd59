"""The event stream of a run: one JSON line per report, appended during the run.

A run that resumes from a checkpoint writes the checkpoint's step in a separate line, ``{"from_step": 120, ...}``.
Steps beyond it that were reported before are trained and reported again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from rtrain.errors import TrainingError
from rtrain.runs.filesystem.files import to_json, unshare
from rtrain.runs.filesystem.plain_files import open_inside, parse_json
from rtrain.runs.manifest import utc_now

T = TypeVar("T")
EVENTS = "events.jsonl"
LINE_BYTES = 1 << 20
"""More than any line takes; a longer one is damaged, and never held in memory."""
BLOCK_BYTES = 1 << 20
"""What is read of a file in one piece."""


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
    values: Mapping[str, Any] = field(default_factory=dict)
    """Non-numeric values that a custom train loop reported: texts, lists, None."""

    @classmethod
    def at(
        cls,
        timestamp: float,
        *,
        step: int,
        epoch: int,
        metrics: Mapping[str, float],
        values: Mapping[str, Any] | None = None,
    ) -> Event:
        """Make an event that happened at ``timestamp`` (seconds since 1970)."""
        time = datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
        return cls(step=step, epoch=epoch, time=time, metrics=dict(metrics), values=dict(values or {}))


def named_apart(reported: Mapping[str, T], taken: Collection[str]) -> dict[str, T]:
    """Return what a loop has reported as columns of a table, whose own columns are called ``taken``.

    A metric called ``epoch``, say, is ``reported/epoch`` beside the column that says when it was reported.
    """
    return {f"reported/{name}" if name in taken else name: value for name, value in reported.items()}


class EventLog:
    """Appends events to ``events.jsonl``; each line is written immediately, so that readers never wait for a buffer."""

    def __init__(self, path: Path) -> None:
        unshare(path.parent, path.name)
        _drop_torn_line(path)
        self._file: IO[str] = open_inside(path.parent, path.name, "a", encoding="utf-8", buffering=1)

    def append(self, event: Event) -> None:
        """Add one line."""
        self._file.write(event_line(event))

    def go_back(self, step: int) -> None:
        """Write that training resumes from a step: events of later steps that exist already come again."""
        self._file.write(to_json({"from_step": step, "time": utc_now()}) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def events_file(folder: Path) -> Path:
    """Return the file of events of a run directory, or those of a checkpoint since the one before."""
    return folder / EVENTS


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a finished or running run, oldest first, each step as it was trained last.

    A line that is being written is left for later. A line that a crash cut off, or that is damaged, is left out.
    """
    return reversed(list(newest_first(path)))


def newest_first(path: Path) -> Iterator[Event]:
    """Yield what ``read_events`` does, the newest one first; only as much of the file is read as is asked for."""
    before = math.inf
    for line in _lines_from_the_end(path):
        entry = parse_line(line)
        if isinstance(entry, Event):
            if entry.step <= before:
                yield entry
        elif entry is not None:
            before = min(before, entry)


def reaches_step(path: Path, step: int) -> bool:
    """Return whether a file holds a report of this step or a later one, training that was done again included."""
    entries = map(parse_line, _lines_from_the_end(path))
    return any(isinstance(entry, Event) and entry.step >= step for entry in entries)


def event_line(event: Event) -> str:
    """Return the line of an event; NaN and infinity become null.

    Raises:
        TrainingError: It is longer than what is read back.
    """
    facts = {"step": event.step, "epoch": event.epoch, "time": event.time, "metrics": event.metrics}
    if event.values:
        facts["values"] = event.values
    line = to_json(facts) + "\n"
    if len(line) > LINE_BYTES:  # JSON escapes what is not ASCII
        raise TrainingError(
            f"the report of step {event.step} takes {len(line):,} bytes in events.jsonl, more than {LINE_BYTES:,}: "
            f"it has {len(event.metrics):,} metrics and {len(event.values):,} other values.",
            "Report fewer metrics with shorter names, and write large values to a file of the checkpoint.",
        )
    return line


def damaged_lines(path: Path) -> Iterator[int]:
    """Yield the numbers, from 1 on, of the lines that can't be read."""
    with open_inside(path.parent, path.name) as file:
        number, begins = 0, True
        while line := file.readline(LINE_BYTES + 1):
            number += begins
            if begins and (len(line) > LINE_BYTES or parse_line(line) is None):
                yield number
            begins = line.endswith(b"\n")


def parse_line(line: bytes) -> Event | int | None:
    """Return what a line says: an event, or the step that training went back to; None if it is damaged."""
    try:
        said = parse_json(line)
        if "from_step" in said:
            return int(said["from_step"])
        metrics = {str(name): None if value is None else float(value) for name, value in said["metrics"].items()}
        place = {"step": int(said["step"]), "epoch": int(said["epoch"])}
        return Event(**place, time=str(said["time"]), metrics=metrics, values=dict(said.get("values", {}).items()))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def _lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that are not empty, the last one first, without those of more than ``LINE_BYTES``."""
    try:
        file = open_inside(path.parent, path.name)
    except FileNotFoundError:
        return
    with file:
        at, rest = file.seek(0, os.SEEK_END), b""
        while at > 0:
            begin = max(0, at - BLOCK_BYTES)
            file.seek(begin)
            rest, *lines = (file.read(at - begin) + rest).split(b"\n")
            at = begin
            yield from (line for line in reversed(lines) if 0 < len(line) <= LINE_BYTES)
            rest = rest[-LINE_BYTES - 1 :]
        if 0 < len(rest) <= LINE_BYTES:
            yield rest


def _drop_torn_line(path: Path) -> None:
    """Cut off what a killed process had begun to write."""
    try:
        file = open_inside(path.parent, path.name, "r+b")
    except FileNotFoundError:
        return
    with file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - BLOCK_BYTES)
            file.seek(begin)
            after = file.read(end - begin).rfind(b"\n") + 1
            if after:
                end = begin + after
                break
            end = begin
        file.truncate(end)
