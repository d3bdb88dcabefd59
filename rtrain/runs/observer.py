"""Who watches a run live."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Protocol

from rtrain.runs.events import Event
from rtrain.runs.manifest import Manifest
from rtrain.runs.records import ProgressRecord


class Stages(Protocol):
    """Someone who watches the preparation of a run or a sweep."""

    def stage(self, name: str) -> None:
        """Called when the driver starts something, e.g. ``reading digits``."""


class Observer(Stages, Protocol):
    """Someone who watches a run live: the terminal, a notebook, a logger."""

    def notice(self, text: str) -> None:
        """Called with one line that the user should know."""

    def started(self, run_dir: Path, manifest: Manifest) -> None:
        """Called when the run directory has been created."""

    def progress(self, record: ProgressRecord) -> None:
        """Called with the progress of the run."""

    def event(self, event: Event) -> None:
        """Called with a report of metrics."""

    def printed(self, text: str) -> None:
        """Called with lines that workers have printed, if they are to be shown."""

    def ended(self, run_dir: Path, manifest: Manifest) -> None:
        """Called when the run has ended, whatever its outcome."""


class SilentObserver:
    """Watches a run and shows nothing but the output of user code."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def printed(self, text: str) -> None:
        """Print what user code has printed, as if it had run here."""
        sys.stdout.write(f"{text}\n")
