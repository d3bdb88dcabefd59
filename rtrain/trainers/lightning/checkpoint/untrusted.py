"""What is read of Lightning's checkpoint if another account may have written it: numbers, and no names of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor

from rtrain.errors import CheckpointError
from rtrain.trainers.lightning.checkpoint.stored import HYPERPARAMETERS, TYPES
from rtrain.trainers.trained import TRUST

OF_TRAINING = ("epoch", "global_step", "state_dict", "loops", "optimizer_states", "lr_schedulers")
VERSION = "pytorch-lightning_version"
UNREAD = (
    *(*HYPERPARAMETERS, *TYPES),
    *(pl.LightningModule.CHECKPOINT_HYPER_PARAMS_NAME, pl.LightningDataModule.CHECKPOINT_HYPER_PARAMS_NAME),
)
"""Hyperparameters: modules are built from the config."""


class StrangersNumbers(TorchCheckpointIO):
    """Reads a checkpoint, and gives callbacks and modules numbers of it alone.

    A callback may delete or write the files that its state names (``ModelCheckpoint`` does), and so may any hook of the
    user's. They get numbers in the place of numbers, and neither texts nor names that they don't have themselves.

    Args:
        trainer: Whose callbacks and data take the state.
    """

    def __init__(self, trainer: pl.Trainer) -> None:
        super().__init__()
        self._trainer = trainer

    def load_checkpoint(self, path: Any, map_location: Any = "cpu", weights_only: bool | None = True) -> dict[str, Any]:
        """Return the numbers.

        Raises:
            CheckpointError: A callback, hook or data module would get more than numbers.
        """
        stored = super().load_checkpoint(path, map_location, weights_only=True)
        found = {key: without_texts(stored[key]) for key in OF_TRAINING if key in stored}
        found[VERSION] = str(stored.get(VERSION) or pl.__version__)
        given, taken = dict(stored.get("callbacks") or {}), self._states()
        found["callbacks"] = {key: given[key] for key in given.keys() & taken.keys()}
        more = stored.keys() - found.keys() - set(UNREAD)
        found |= {key: stored[key] for key in more}
        for key, state in (*found["callbacks"].items(), *((key, stored[key]) for key in more)):
            if not takes_place(state, taken.get(key, {})):
                raise CheckpointError(
                    f"{Path(path).parent} was written by another account, and {key} would load more than numbers "
                    "from it.",
                    TRUST.replace("--trust", "rtrain resume RUN --trust"),
                )
        return found

    def _states(self) -> dict[str, Any]:
        """Return what those that take a state have for one now, by the names under which it is stored."""
        states = {one.state_key: one.state_dict() for one in self._trainer.callbacks}
        for one in (self._trainer.datamodule, self._trainer.precision_plugin):
            if one is not None:
                states[type(one).__qualname__] = one.state_dict()
        return states


def without_texts(value: Any) -> Any:
    """Return the numbers and tensors in a value; what is named by a text, the way of a schedule say, is left out."""
    if isinstance(value, Mapping):
        return {key: without_texts(one) for key, one in value.items() if not isinstance(one, str | bytes)}
    if isinstance(value, list | tuple):
        return type(value)(without_texts(one) for one in value if not isinstance(one, str | bytes))
    return value


def takes_place(then: Any, now: Any) -> bool:
    """Return whether a state has numbers where that of now has some, and is the same elsewhere."""
    if isinstance(now, Mapping):
        same = isinstance(then, Mapping) and then.keys() <= now.keys()
        return same and all(takes_place(one, now[key]) for key, one in then.items())
    if isinstance(now, list | tuple):
        same = isinstance(then, list | tuple) and len(then) == len(now)
        return same and all(map(takes_place, then, now))
    if isinstance(now, str | bytes):
        return type(then) is type(now) and bool(then == now)
    return then is None or isinstance(then, int | float | Tensor)
