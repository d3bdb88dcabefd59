"""The interface of observers of a sweep."""

from __future__ import annotations

from typing import Protocol

from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial


class SweepObserver(Protocol):
    """Someone who watches a sweep live."""

    def stage(self, name: str) -> None:
        """Called when the sweep starts something."""

    def notice(self, text: str) -> None:
        """Called with one line that the user should know."""

    def sweep_started(self, record: SweepRecord, num_trials: int) -> None:
        """Called before trials start, with their maximum number."""

    def trial_changed(self, trial: Trial) -> None:
        """Called when a trial starts, reports, or ends."""

    def printed(self, text: str) -> None:
        """Take lines to show that the workers of trials have printed."""

    def sweep_ended(self, record: SweepRecord) -> None:
        """Called when the sweep has ended."""
