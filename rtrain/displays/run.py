"""The display of a run in progress: live on a terminal, one line per epoch elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rtrain.displays.shown_reports import Thinning
from rtrain.run_lines import Limits, end_lines, event_line, is_milestone, start_line
from rtrain.runs.events import Event
from rtrain.runs.manifest import Manifest
from rtrain.runs.observer import Observer
from rtrain.runs.records import ProgressRecord
from rtrain.text.printable import printable


@contextmanager
def make_display() -> Iterator[Observer]:
    """Return the display that fits the terminal; it is taken down when the block ends."""
    if not sys.stdout.isatty():
        yield PlainDisplay()
        return
    from rtrain.displays.run_live import LiveDisplay

    with LiveDisplay() as display:
        yield display


class PlainLines:
    """Plain lines, for logs and pipes."""

    def __init__(self) -> None:
        # The current stream: later output of user code is also copied to a log, the display's lines are not.
        self._out, self._err = sys.stdout, sys.stderr

    def stage(self, name: str) -> None:
        """Say nothing: stages last seconds."""

    def notice(self, text: str) -> None:
        """Print a warning line."""
        print(printable(f"note: {text}", "\n\t"), file=self._err, flush=True)

    def printed(self, text: str) -> None:
        """Print what workers have printed."""
        self._print(text)

    def _print(self, text: str) -> None:
        print(printable(text, "\n\t"), file=self._out, flush=True)


class PlainDisplay(PlainLines):
    """Plain lines of a run."""

    def started(self, run_dir: Path, manifest: Manifest) -> None:
        """Print what starts."""
        self._limits = Limits.of(manifest)
        self._thinning = Thinning(self._limits)
        self._print(start_line(run_dir, manifest))

    def progress(self, record: ProgressRecord) -> None:
        """Say nothing: an epoch gets one line."""

    def event(self, event: Event) -> None:
        """Print one line at the end of an epoch or evaluation."""
        if is_milestone(event) and self._thinning.shows(event):
            self._print(event_line(event, self._limits))

    def ended(self, run_dir: Path, manifest: Manifest) -> None:
        """Print the lines that end every run."""
        if (last := self._thinning.last()) is not None:
            self._print(event_line(last, self._limits))
        self._print("\n".join(end_lines(run_dir, manifest)))
