"""How far a reader has come in a run's events. The events of a step are read once, even if training repeated the step.

Each reader stores its position in ``loggers/NAME.json`` of the run directory, and continues there when the run is
resumed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rtrain.runs.events import LINE_BYTES, Event, events_file, parse_line
from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.runs.filesystem.plain_files import open_inside, read_json

logger = logging.getLogger(__name__)

FOLDER = "loggers"
"""In a run directory: how far each reader has come."""

MOST_BYTES = 2 * LINE_BYTES
"""How much is read at a time: at least one line."""


@dataclass(frozen=True, kw_only=True)
class Position:
    """A place in ``events.jsonl``, and what was read before it."""

    offset: int = 0
    """Bytes before it."""
    events: int = 0
    """Events that were read."""
    step: int = -1
    """The newest step of them."""
    names: frozenset[str] = frozenset()
    """What was read of that step."""

    def after(self, event: Event) -> tuple[Event | None, Position]:
        """Return what is new in an event, or None, and the place behind it."""
        if event.step < self.step:
            return None, self
        seen = self.names if event.step == self.step else frozenset()
        metrics = {name: value for name, value in event.metrics.items() if name not in seen}
        values = {name: value for name, value in event.values.items() if name not in seen}
        if not metrics and not values:
            return None, self
        there = replace(self, events=self.events + 1, step=event.step, names=seen.union(metrics, values))
        return replace(event, metrics=metrics, values=values), there


def read_new(path: Path, position: Position) -> tuple[list[Event], Position]:
    """Return events that were added to a file, some at a time, and the position after them.

    A line that is being written is left for later, and a damaged one is skipped. A file that has become shorter was
    rewritten; events that were read before are not read again.
    """
    try:
        file = open_inside(path.parent, path.name)
    except FileNotFoundError:
        return [], position
    with file:
        if file.seek(0, os.SEEK_END) < position.offset:
            position = replace(position, offset=0)
        file.seek(position.offset)
        data = file.read(MOST_BYTES)
    end = data.rfind(b"\n") + 1
    if not end and len(data) == MOST_BYTES:  # longer than any line of an event
        end = len(data)
    found = []
    for line in data[:end].splitlines():
        entry = parse_line(line) if line else None
        if isinstance(entry, Event):
            event, position = position.after(entry)
            found += [] if event is None else [event]
    return found, replace(position, offset=position.offset + end)


def end_of(run_dir: Path) -> Position:
    """Return the place behind everything that a run has reported so far."""
    position = Position()
    while (found := read_new(events_file(run_dir), position)[1]) != position:
        position = found
    return position


def load_position(run_dir: Path, name: str) -> tuple[Position, dict[str, str]] | None:
    """Return how far the reader ``name`` had come, and its ids; None if it has not begun."""
    try:
        state: Mapping[str, Any] = read_json(run_dir, f"{FOLDER}/{name}.json")
        place = {key: state[key] for key in ("offset", "events", "step")}
        return Position(**place, names=frozenset(state["names"])), dict(state["ids"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        logger.warning("%s of %s is damaged (%s): everything is read again", name, run_dir, error)
        return None


def save_position(run_dir: Path, name: str, position: Position, ids: Mapping[str, str]) -> None:
    """Note how far the reader ``name`` has come."""
    path = run_dir / FOLDER / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, to_json({**asdict(position), "names": sorted(position.names), "ids": dict(ids)}) + "\n")
