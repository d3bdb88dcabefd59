"""Where trials are trained: in this process one after the other, or by processes of a Ray cluster at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rtrain.config.trials import Plan
from rtrain.runs.records import TrialRecord

NO_ROOM = "the cluster has not enough free resources"


class TrialListener(Protocol):
    """Whoever wants to know how trials stand."""

    def hear(self, number: int, record: TrialRecord) -> None:
        """Take a record of a trial; it may call ``Pool.stop``."""

    def over(
        self, number: int, error: Mapping[str, Any] | None, *, died: bool = False, seconds: float | None = None
    ) -> None:
        """Called when a trial is no longer training: it has ended, or its process has died.

        Args:
            number: Of the trial.
            error: ``type`` and ``message`` of its failure.
            died: Its process has died.
            seconds: What it took, where that is not the time since it was given to the pool.
        """

    def not_started(self, number: int) -> None:
        """Called when a trial that the pool has taken was not started, since the sweep ends."""


class Pool(Protocol):
    """Trains trials."""

    most_at_once: int | None
    """How many trials there can ever be room for at the same time; None: it depends on the trials."""

    @property
    def obstacle(self) -> str:
        """Why the next trial is not started although none is trained."""

    def try_start(self, number: int, plan: Plan) -> bool:
        """Begin to train a trial if its resources are free; return whether they were."""

    def wait(self) -> None:
        """Wait a moment, and pass on reports of the trials."""

    def stop(self, number: int, status: str, reason: str) -> None:
        """Have a trial end soon, with this status and reason in its manifest."""

    def close(self) -> None:
        """End whatever is left."""
