"""Metrics as a table: ``metrics.csv`` in the run directory, for spreadsheets and pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from rtrain.loggers import base
from rtrain.loggers.base import Delivered, LoggedRun, cut
from rtrain.runs.events import Event, named_apart
from rtrain.runs.filesystem.files import write_atomic
from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.runs.manifest import utc_now

PLACE = ("step", "epoch", "time")
MOST_CHARACTERS = 10_000
"""Of a text in a cell; spreadsheets and Python's own reader take little more."""


@dataclass(kw_only=True)
class Conf:
    """A CSV file in the run directory."""

    file_name: Annotated[str, Field(pattern=r"^[\w-][\w.-]*\.csv$")] = "metrics.csv"
    """Name of the file."""


class Logger(base.Logger):
    """Writes a table of the metrics into the run directory, a row for each report."""

    Conf = Conf

    _folder: Path
    _columns: list[str]

    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Keep the rows that were delivered, and no others."""
        self._folder = run.folder
        columns, rows = self._read()
        is_whole = bool(delivered.ids) and len(rows) >= delivered.events
        self._columns = columns or list(PLACE)
        self._write(rows[: delivered.events] if is_whole else [])
        return dict(delivered.ids) if is_whole else {"begun": utc_now()}

    def log(self, events: Sequence[Event]) -> None:
        """Append rows; a new metric adds a column, for which the file is rewritten."""
        rows = [_row(event) for event in events]
        new = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in self._columns]
        if new:
            _, before = self._read()
            self._columns += new
            self._write([*before, *rows])
            return
        with open_inside(self._folder, self.conf.file_name, "a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, self._columns).writerows(rows)

    def _read(self) -> tuple[list[str], list[dict[str, Any]]]:
        try:
            with open_inside(self._folder, self.conf.file_name, "r", encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                return list(reader.fieldnames or ()), list(reader)
        except FileNotFoundError:
            return [], []

    def _write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(self._folder / self.conf.file_name, text.getvalue())


def _row(event: Event) -> dict[str, Any]:
    metrics = {name: "nan" if value is None else value for name, value in event.metrics.items()}
    texts = {name: cut(str(value), MOST_CHARACTERS) for name, value in event.values.items()}
    place = {"step": event.step, "epoch": event.epoch, "time": event.time}
    return {**place, **named_apart({**texts, **metrics}, place)}
