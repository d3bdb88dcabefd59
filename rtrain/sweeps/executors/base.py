"""Where trials are trained: in this process one after the other, or by processes of a Ray cluster at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rtrain.config.trials import Plan
from rtrain.runs.records import TrialRecord


class TrialListener(Protocol):
    """Whoever wants to know how trials stand."""

    def hear(self, number: int, record: TrialRecord) -> None:
        """Take a record of a trial; it may call ``Pool.stop``."""

    def over(self, number: int, error: Mapping[str, Any] | None, *, died: bool = False) -> None:
        """Called when a trial is no longer training: it has ended, or its process has died."""


class Pool(Protocol):
    """Trains trials."""

    most_at_once: int | None
    """How many trials there can ever be room for at the same time; None: it depends on the trials."""

    def try_start(self, number: int, plan: Plan) -> bool:
        """Begin to train a trial if its resources are free; return whether they were."""

    def wait(self) -> None:
        """Wait a moment, and pass on reports of the trials."""

    def stop(self, number: int, status: str, reason: str) -> None:
        """Have a trial end soon, with this status and reason in its manifest."""

    def close(self) -> None:
        """End whatever is left."""
