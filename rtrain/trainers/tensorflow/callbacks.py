"""Calls Keras callbacks at steps and epochs, and keeps what they remember."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import keras
import numpy as np

from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import read_state

FILE_NAME = "callbacks.json"
NUMBERS = (bool, int, float, type(None))
SETTINGS = ("min_delta",)
"""What Keras turns the other way round once it has found out which way is better, which it does after a resume too."""


class Callbacks:
    """The user's callbacks.

    Args:
        own: They, maybe none.
        model: What they see.
        epochs: Epochs of the run, where they are known.
    """

    def __init__(self, own: list[Any], model: Any, epochs: int | None) -> None:
        self._own, self._model = own, model
        self._list = keras.callbacks.CallbackList(own, model=model, epochs=epochs) if own else None
        self._epoch, self._in_epoch = 0, False
        foreign = [type(one).__name__ for one in own if type(one).__module__.partition(".")[0] != "keras"]
        self._watched = ", ".join(foreign)
        if self._list is not None:
            self._list.on_train_begin()
        self._before = [_plain(one) for one in own]

    def __bool__(self) -> bool:
        return bool(self._own)

    def begin_step(self, step: int) -> None:
        """Call the callbacks for a step that begins, and before that for its epoch if it begins too."""
        if self._list is not None:
            if not self._in_epoch:
                self._list.on_epoch_begin(self._epoch)
                self._in_epoch = True
            self._list.on_train_batch_begin(step)

    def end_step(self, step: int, loss: Any) -> None:
        """Call the callbacks for a step that is done; waits for its loss."""
        if self._list is not None:
            self._list.on_train_batch_end(step, {"loss": float(loss)})

    def end_epoch(self, epoch: int, logs: Mapping[str, float]) -> str:
        """Report so many finished epochs; return why training should end, or an empty string.

        Raises:
            TrainingError: A callback of the user's changes weights that were evaluated.
        """
        self._epoch, self._in_epoch = epoch, False
        if self._list is None:
            return ""
        before = self._model.get_weights() if self._watched else []
        self._list.on_epoch_end(epoch - 1, dict(logs))
        after = self._model.get_weights() if self._watched else []
        if not all(np.array_equal(one, other, equal_nan=True) for one, other in zip(before, after, strict=True)):
            raise TrainingError(
                f"{self._watched} changes weights at the end of epoch {epoch}, after their evaluation: the checkpoint "
                "would have the score of others.",
                "Change them in on_epoch_begin or on_train_batch_end.",
            )
        return "a callback" if self._model.stop_training else ""

    def end(self) -> None:
        """Tell that training has ended."""
        if self._list is not None:
            self._list.on_train_end()

    def state(self) -> dict[str, Any]:
        """Return the numbers that the callbacks remember, beyond those they were built with."""
        changed = [
            {name: value for name, value in _plain(one).items() if name not in before or before[name] != value}
            for one, before in zip(self._own, self._before, strict=True)
        ]
        return {"epoch": self._epoch, "in_epoch": self._in_epoch, "callbacks": changed}

    def load(self, folder: Path) -> None:
        """Have the callbacks remember what ``state`` gave, if there are as many as then.

        They take numbers alone, in the place of numbers: names of files and folders are those of the config.
        """
        if not (folder / FILE_NAME).exists():
            return
        state = read_state(folder, FILE_NAME)
        self._epoch, self._in_epoch = state["epoch"], state["in_epoch"]
        if len(state["callbacks"]) == len(self._own):
            for one, values in zip(self._own, state["callbacks"], strict=True):
                known = _plain(one)
                vars(one).update(
                    {name: now for name, now in values.items() if name in known and isinstance(now, NUMBERS)}
                )


def _plain(callback: Any) -> dict[str, Any]:
    """Return the numbers that a callback keeps, but for its constructor arguments."""
    fixed = {*SETTINGS, *(name for kind in type(callback).__mro__ for name in signature(kind).parameters)}
    values = {name: one.item() if isinstance(one, np.generic) else one for name, one in vars(callback).items()}
    return {name: one for name, one in values.items() if name not in fixed and isinstance(one, NUMBERS)}
