"""Callbacks of LightGBM: functions that ``lightgbm.train`` calls itself, with rtrain's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import lightgbm
from lightgbm.callback import EarlyStopException

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.trainers.loops.boosting.rounds import Rounds
from rtrain.trainers.loops.callbacks.base import WorkerCallback
from rtrain.trainers.loops.callbacks.build import build_callbacks, check_trainer_callbacks

CALLBACK_TYPES = (WorkerCallback, Callable)


def check_own(nodes: Sequence[Any], builder: Builder) -> None:
    """Refuse callbacks that can't be made, and LightGBM's early stopping.

    Raises:
        ConfigError: Names the callback.
    """
    for where, _, kind in check_trainer_callbacks(nodes, builder, CALLBACK_TYPES):
        if kind is lightgbm.early_stopping:
            hint = "Checkpoints keep the best round of trainer.early_stopping={patience: 10}"
            raise ConfigError(f"{where}: rtrain stops early itself.", hint)


def build_own(nodes: Sequence[Any], builder: Builder, rounds: Rounds) -> tuple[list[WorkerCallback], list[Any]]:
    """Build the callbacks of a config; return rtrain's, and those for ``lightgbm.train``."""
    made = build_callbacks(nodes, builder, CALLBACK_TYPES)
    own = [one for one in made if isinstance(one, WorkerCallback)]
    done = rounds.progress.step
    return own, [OfLightGBM(one, done, rounds) for one in made if not isinstance(one, WorkerCallback)]


class OfLightGBM:
    """Calls a callback as if a resumed training had never been interrupted.

    Args:
        own: The callback.
        done: Rounds that were done before.
        rounds: Ends training if the callback wants that.
    """

    def __init__(self, own: Any, done: int, rounds: Rounds) -> None:
        self._own, self._done, self._rounds = own, done, rounds
        self.order = getattr(own, "order", 0)
        self.before_iteration = getattr(own, "before_iteration", False)

    def __call__(self, env: Any) -> None:
        """Call it."""
        try:
            self._own(replace(env, begin_iteration=env.begin_iteration - self._done))
        except EarlyStopException:
            self._rounds.control.signal.ask()


class BeforeRound:
    """Calls callbacks before a round."""

    before_iteration = True

    def __init__(self, rounds: Rounds, model: list[Any]) -> None:
        self._rounds, self._model = rounds, model

    def __call__(self, env: Any) -> None:
        """Note the Booster, which LightGBM makes itself, and call them."""
        self._model[:] = [env.model]
        self._rounds.before_round()
