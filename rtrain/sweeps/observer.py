"""What whoever watches a sweep hears of it."""

from __future__ import annotations

from typing import Protocol

from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial


class SweepObserver(Protocol):
    """Someone who watches a sweep live."""

    def stage(self, name: str) -> None:
        """Hear what is done now."""

    def notice(self, text: str) -> None:
        """Hear something that the user should know, in one line."""

    def sweep_started(self, record: SweepRecord, num_trials: int) -> None:
        """Hear that trials will start, and how many there are at most."""

    def trial_changed(self, trial: Trial) -> None:
        """Hear that a trial starts, reports, or is over."""

    def printed(self, text: str) -> None:
        """Take lines to show that the workers of trials have printed."""

    def sweep_ended(self, record: SweepRecord) -> None:
        """Hear that the sweep is over."""
