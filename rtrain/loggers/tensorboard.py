"""Metrics as TensorBoard reads them: event files in the run directory, written without TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import nan
from typing import Any

import numpy as np

from rtrain.config.files.home import expanded
from rtrain.loggers import base
from rtrain.loggers.base import Delivered, LoggedRun, SystemSample
from rtrain.runs.events import Event


@dataclass(kw_only=True)
class Conf:
    """Event files of TensorBoard."""

    dir: str | None = None
    """Folder in which each run has a subfolder, named by its id; null: ``tensorboard`` in the run directory, so that
    ``tensorboard --logdir runs`` shows all runs."""


class Logger(base.Logger):
    """Writes event files that TensorBoard shows."""

    Conf = Conf
    requires = ("tensorboardX", "psutil", "pynvml")
    extra = "tensorboard"

    _writer: Any = None

    def open(self, run: LoggedRun, delivered: Delivered) -> Mapping[str, str]:
        """Begin a file; TensorBoard forgets what earlier ones have of steps that come again."""
        # Not SummaryWriter, which hands events to a thread: its flush() does not wait for them.
        from tensorboardX.event_file_writer import EventsWriter

        folder = run.folder / "tensorboard" if self.conf.dir is None else expanded(self.conf.dir) / run.id
        folder.mkdir(parents=True, exist_ok=True)
        newest = delivered.step if delivered.ids.get("dir") == str(folder) else -1
        # TensorBoard reads files in the order of their names, which begin with the second in which they are made.
        self._writer = EventsWriter(str(folder / "events"), f".{delivered.events:09d}")
        if delivered.ids:
            self._forget_from(newest + 1)
        if not delivered.ids or run.changed:
            rows = "".join(f"\n| {name} | {value} |" for name, value in run.parameters.items())
            self._write_text("config", f"| key | value |\n|---|---|{rows}", max(newest, 0), time.time())
        self._writer.flush()
        return {"dir": str(folder)}

    def log(self, events: Sequence[Event]) -> None:
        """Write numbers as scalars and texts as texts."""
        from tensorboardX.summary import scalar

        for event in events:
            at = datetime.fromisoformat(event.time).timestamp()
            for name, value in event.metrics.items():
                self._write(scalar(name, np.float64(nan if value is None else value)), event.step, at)
            for name, text in event.values.items():
                self._write_text(name, str(text), event.step, at)
        self._writer.flush()

    def log_system(self, sample: SystemSample) -> None:
        """Write it as scalars whose step is the run's second."""
        from tensorboardX.summary import scalar

        for name, value in sample.values.items():
            self._write(scalar(name, value), sample.seconds, time.time())
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def _write_text(self, name: str, text: str, step: int, at: float) -> None:
        from tensorboardX.summary import text as as_text

        self._write(as_text(name, text), step, at)

    def _write(self, summary: Any, step: int, at: float) -> None:
        from tensorboardX.proto.event_pb2 import Event as Entry

        self._writer.write_event(Entry(summary=summary, step=step, wall_time=at))

    def _forget_from(self, step: int) -> None:
        from tensorboardX.proto.event_pb2 import Event as Entry
        from tensorboardX.proto.event_pb2 import SessionLog

        start = SessionLog(status=SessionLog.START)
        self._writer.write_event(Entry(session_log=start, step=step, wall_time=time.time()))
