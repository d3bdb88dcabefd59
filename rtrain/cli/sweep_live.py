"""The live table of a sweep: trials that train now, those that are over, the best one, and the time left."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from rtrain.cli.live import LiveScreen
from rtrain.cli.sweep_lines import end_lines, is_over, start_line, trial_line, values_text
from rtrain.sweeps.record import SweepRecord
from rtrain.sweeps.trial import Trial

MAX_ROWS = 20


class LiveSweepDisplay(LiveScreen):
    """Watches one sweep on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._record: SweepRecord | None = None
        self._num_trials, self._stage = 0, ""
        self._began = time.monotonic()
        self._over_before = 0

    def stage(self, name: str) -> None:
        """Show what happens before the first trial."""
        self._stage = name

    def sweep_started(self, record: SweepRecord, num_trials: int) -> None:
        """Print what starts, and begin the table."""
        self._record, self._num_trials, self._began = record, num_trials, time.monotonic()
        self._stage = ""
        self._over_before = self._num_over()
        self._console.print(start_line(record, num_trials), highlight=False, soft_wrap=True)

    def trial_changed(self, trial: Trial) -> None:
        """Print one line when it is over."""
        assert self._record is not None
        if is_over(trial):
            self._console.print(trial_line(trial, self._record), highlight=False, soft_wrap=True)

    def sweep_ended(self, record: SweepRecord) -> None:
        """Print what came of it, and end the table."""
        self._record = None
        self._console.print("\n".join(end_lines(record)), highlight=False, soft_wrap=True)

    def _num_over(self) -> int:
        return 0 if self._record is None else sum(map(is_over, self._record.trials))

    def _render(self) -> Group | Text:
        if self._record is None:
            return Text(self._stage)
        table = Table(box=None, pad_edge=False)
        for name in ("trial", "parameters", "epoch", "metric"):
            table.add_column(name, no_wrap=name == "trial")
        for one in [one for one in self._record.trials if one.status in ("running", "paused")][:MAX_ROWS]:
            far = f"{one.epoch}/{one.max_epochs}" if one.max_epochs else str(one.epoch)
            table.add_row(one.name, one.what, far, values_text(one, self._record))
        return Group(table, Text(self._summary(self._record)))

    def _summary(self, record: SweepRecord) -> str:
        done, best = self._num_over(), record.best
        parts = [f"{done} of {self._num_trials} over"]
        if best is not None:
            parts.append(f"best {values_text(best, record)} ({best.name})")
        new = done - self._over_before
        if new:
            left = int((time.monotonic() - self._began) / new * (self._num_trials - done))
            parts.append(f"{left // 60}:{left % 60:02d} left")
        return "  ".join(parts)
