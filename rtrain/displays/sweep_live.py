"""The live table of a sweep: trials that train now, those that are over, the best one, and the time left."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from rtrain.displays.run_live import LiveScreen, plain
from rtrain.displays.sweep_lines import end_lines, is_over, short_words, start_line, trial_line, values_text
from rtrain.history.query.quantities import clock
from rtrain.runs.status import Status
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.text.printable import printable

MAX_ROWS = 20
LINES_AROUND = 6
"""Lines of a terminal that are kept for what is not in the table."""
TELLING = 0.05
"""Part of a trial that has to be trained before the time left can be estimated."""


class LiveSweepDisplay(LiveScreen):
    """Watches one sweep on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._record: SweepRecord | None = None
        self._num_trials, self._stage = 0, ""
        self._began = time.monotonic()
        self._done_before = 0.0

    def stage(self, name: str) -> None:
        """Show what happens before the first trial."""
        self._stage = name

    def sweep_started(self, record: SweepRecord, num_trials: int) -> None:
        """Print what starts, and begin the table."""
        self._record, self._num_trials, self._began = record, num_trials, time.monotonic()
        self._stage = ""
        self._done_before = sum(map(_done, record.trials))
        self._say(start_line(record, num_trials))

    def trial_changed(self, trial: Trial) -> None:
        """Print one line when it is over."""
        assert self._record is not None
        if is_over(trial):
            self._say(trial_line(trial, self._record))

    def sweep_ended(self, record: SweepRecord) -> None:
        """Print what came of it, and end the table."""
        self._record = None
        self._say_end(end_lines(record), record.status)

    def _render(self) -> Group | Text:
        if self._record is None:
            return plain(self._stage)
        table = Table(box=None, pad_edge=False)
        for name in ("trial", "parameters", "epoch", "metric"):
            table.add_column(name, no_wrap=name == "trial")
        shown = [one for one in self._record.trials if one.status in (Status.RUNNING, Status.PAUSED)]
        shown.sort(key=lambda one: one.status == Status.PAUSED)
        most = max(1, min(MAX_ROWS, self._console.height - LINES_AROUND))
        for one in shown[:most]:
            cells = (one.name, short_words(one), _progress(one), values_text(one, self._record))
            table.add_row(*map(plain, cells))
        if len(shown) > most:
            table.add_row(f"and {len(shown) - most} more")
        return Group(table, Text(printable(self._summary(self._record)), style="bold"))

    def _summary(self, record: SweepRecord) -> str:
        over, elapsed = sum(map(is_over, record.trials)), time.monotonic() - self._began
        parts = [f"{over} of {self._num_trials} ended", f"{clock(elapsed)} so far"]
        done = sum(map(_done, record.trials))
        new = done - self._done_before
        if new >= TELLING and done < self._num_trials:
            parts.append(f"about {clock(elapsed / new * (self._num_trials - done))} left")
        best = record.best
        if best is not None:
            parts.append(f"best {values_text(best, record)} ({best.name})")
        return "  ".join(parts)


def _done(trial: Trial) -> float:
    """Return the trained part of a trial, as far as it is known before the trial ends."""
    if is_over(trial) and trial.status != Status.INTERRUPTED:
        return 1.0
    return min(1.0, trial.epoch / trial.max_epochs) if trial.max_epochs else 0.0


def _progress(trial: Trial) -> str:
    far = f"{trial.epoch}/{trial.max_epochs}" if trial.max_epochs else str(trial.epoch)
    return f"{far} paused" if trial.status == Status.PAUSED else far
