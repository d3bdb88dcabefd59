"""Calls the callbacks of a config: all of them, in its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rtrain.errors import first_line
from rtrain.trainers.loops.callbacks.base import Training, WorkerCallback


class Callbacks:
    """The callbacks of one rank.

    Args:
        own: They, maybe none.
        training: What they see.
        notice: Takes a line for the user.
    """

    def __init__(self, own: Sequence[WorkerCallback], training: Training, notice: Callable[[str], None]) -> None:
        self._own, self._training, self._notice = list(own), training, notice
        self._told: set[int] = set()

    def tell(self, moment: Callable[..., None], *more: Any) -> None:
        """Call a method of each callback.

        Args:
            moment: The method, e.g. ``WorkerCallback.step_end``.
            more: Its arguments behind the training.
        """
        for place, one in enumerate(self._own):
            try:
                getattr(one, moment.__name__)(self._training, *more)
            except Exception as error:
                if one.on_error != "warn":
                    raise
                self._tell_error(place, moment.__name__, error)

    def _tell_error(self, place: int, name: str, error: Exception) -> None:
        if place not in self._told:
            self._told.add(place)
            what = f"trainer.callbacks.{place}: {name} failed: {type(error).__name__}: {first_line(error)}"
            self._notice(f"{what} (on_error: warn)")
