"""The live display: epoch and step progress, rows per second, loss, metrics and the time left."""

from __future__ import annotations

import re
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from rtrain.displays.shown_reports import ReportColumns, Thinning
from rtrain.history.query.quantities import clock
from rtrain.run_lines import SPEED, Limits, end_lines, is_milestone, place_and_rest, start_line
from rtrain.runs.events import Event
from rtrain.runs.filesystem.fork_locks import free_in_forks
from rtrain.runs.manifest import Manifest
from rtrain.runs.records import ProgressRecord
from rtrain.runs.status import STYLES
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable
from rtrain.text.wrapping import wrapped

RATE_WINDOW_SECONDS = 5.0
SHORTEST_SECONDS = 0.2
SPEED_WINDOW_SECONDS = 300.0
"""Period over which the time left is estimated: a step may take a minute, and evaluations come in between."""


class _TimeLeft(ProgressColumn):
    """Time left, by the speed of this process. Steps from before it resumed count as no time."""

    def render(self, task: Task) -> Text:
        """Return ``1:23 left`` once it can be estimated."""
        left = task.time_remaining
        return Text("" if left is None or task.finished else f"{clock(left)} left", style="cyan")


def plain(text: str) -> Text:
    """Return a text that is shown as it is: without what a terminal obeys, and without rich's markup."""
    return Text(printable(text, "\n\t"))


class LiveScreen(ABC):
    """The lowest lines of a terminal, drawn again and again; what is printed meanwhile stands above them."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stdout)

    def __enter__(self) -> Self:
        # Created here, because rich draws it immediately, so its content has to exist.
        self._live = Live(get_renderable=self._render, console=self._console, refresh_per_second=8, transient=True)
        # What user code prints passes rich; its thread may be drawing when user code forks.
        free_in_forks(self._live._lock, self._console._lock, self._console._record_buffer_lock)
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()

    def notice(self, text: str) -> None:
        """Print a line above the live part."""
        note = plain(self._wrapped(f"note: {text}"))
        note.stylize("yellow", 0, len("note"))
        self._console.print(note, soft_wrap=True)

    def printed(self, text: str) -> None:
        """Print what workers have printed above the live part."""
        self._console.print(plain(text), soft_wrap=True)

    def _say(self, text: str) -> None:
        """Print lines above the live part."""
        self.printed(self._wrapped(text))

    def _say_end(self, lines: Sequence[str], status: str) -> None:
        """Print the lines that end a run or a sweep, the status in the colour of how it ended."""
        text = plain(self._wrapped("\n".join(lines)))
        text.highlight_regex(rf"(?m)(?<=^result      ){re.escape(status)}", STYLES.get(status, ""))
        self._console.print(text, soft_wrap=True)

    def _wrapped(self, text: str) -> str:
        return wrapped(printable(text, "\n\t"), self._console.width)

    @abstractmethod
    def _render(self) -> RenderableType:
        """Return what is drawn now."""


class LiveDisplay(LiveScreen):
    """Watches one run after the other on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=32),
            TextColumn("{task.fields[detail]}", markup=False),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=self._console,
            speed_estimate_period=SPEED_WINDOW_SECONDS,
        )
        free_in_forks(self._progress._lock)
        self._metrics: dict[str, float | None] = {}
        self._rows: deque[tuple[float, int]] = deque()
        self._task: TaskID | None = None
        self._manifest: Manifest | None = None
        self._begin(Limits(None, None))

    def _begin(self, limits: Limits) -> None:
        self._limits, self._thinning, self._columns = limits, Thinning(limits), ReportColumns(limits)

    def stage(self, name: str) -> None:
        """Show what happens before training."""
        self._describe(name, detail="")

    def started(self, run_dir: Path, manifest: Manifest) -> None:
        """Print what starts, and wait for the workers."""
        self._manifest = manifest
        self._begin(Limits.of(manifest))
        self._metrics.clear()
        self._rows.clear()
        self._say(start_line(run_dir, manifest))
        self._describe("starting workers" if manifest.resources["num_workers"] else "training", detail="")

    def progress(self, record: ProgressRecord) -> None:
        """Move the bar."""
        now = time.monotonic()
        self._rows.append((now, record.rows))
        while len(self._rows) > 2 and now - self._rows[0][0] > RATE_WINDOW_SECONDS:
            self._rows.popleft()
        per_epoch = record.steps_per_epoch
        total = self._limits.max_steps
        if total is None and per_epoch and self._limits.max_epochs:
            total = per_epoch * self._limits.max_epochs
        detail = f"step {record.step}" + (f"/{total}" if total else "") + self._rate()
        epoch = min(record.epoch + 1, self._limits.max_epochs or record.epoch + 1)
        self._describe(self._limits.place(epoch), detail=detail, completed=record.step, total=total)

    def event(self, event: Event) -> None:
        """Show new metrics; keep a line of each epoch. Of a loop of the user's, reports are all that is known."""
        epoch, step, metrics = place_and_rest(event.epoch, event.step, event.metrics)
        self._metrics.update(metrics)
        if not self._rows:
            total = self._limits.max_steps
            self._describe(f"{self._limits.unit} {epoch}", f"step {step}", completed=event.step, total=total)
        if is_milestone(event) and self._thinning.shows(event):
            self._say_report(event)

    def ended(self, run_dir: Path, manifest: Manifest) -> None:
        """Print the end of the run and clear the bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        self._metrics.clear()
        if (last := self._thinning.last()) is not None:
            self._say_report(last)
        self._say_end(end_lines(run_dir, manifest), manifest.status)

    def _say_report(self, event: Event) -> None:
        known = None if self._manifest is None else self._manifest.best or self._manifest.model.get("judged_by")
        line = plain(self._columns.line(event, known, self._console.width))
        line.highlight_regex(r"\S+\*(?= |$)", "green")
        self._console.print(line, soft_wrap=True)

    def _describe(self, text: str, detail: str, completed: int = 0, total: int | None = None) -> None:
        text = printable(text)
        if self._task is None:
            self._task = self._progress.add_task(text, total=total, detail=detail)
        self._progress.update(self._task, description=text, detail=detail, completed=completed, total=total)

    def _rate(self) -> str:
        """Return rows per second, once known: the rows of the first record were read before it."""
        seconds, rows = self._rows[-1][0] - self._rows[0][0], sum(rows for _, rows in self._rows) - self._rows[0][1]
        return f"  {rows / seconds:,.0f} rows/s" if seconds > SHORTEST_SECONDS else ""

    def _render(self) -> Group:
        table = Table.grid(padding=(0, 2))
        for name, value in self._metrics.items():
            if name in (SPEED, "train/epoch_loss"):  # the bar, and the lines of epochs, say it
                continue
            table.add_row(Text(printable(name), style="dim"), number_text(value))
        return Group(self._progress, table)
