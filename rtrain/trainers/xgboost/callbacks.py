"""Callbacks of XGBoost, called by rtrain's rounds as ``xgboost.train`` would call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xgboost.callback import EarlyStopping, LearningRateScheduler, TrainingCallback

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError, TrainingError
from rtrain.trainers.loops.callbacks.base import Training, WorkerCallback
from rtrain.trainers.loops.callbacks.build import KEY, build_callbacks, check_trainer_callbacks

CALLBACK_TYPES = (WorkerCallback, TrainingCallback)


def check_own(nodes: Sequence[Any], builder: Builder) -> None:
    """Refuse callbacks that can't be made, and XGBoost's early stopping.

    Raises:
        ConfigError: Names the callback.
    """
    for where, _, kind in check_trainer_callbacks(nodes, builder, CALLBACK_TYPES):
        if isinstance(kind, type) and issubclass(kind, EarlyStopping):
            hint = "Checkpoints keep the best round of trainer.early_stopping={patience: 10}"
            raise ConfigError(f"{where}: rtrain stops early itself.", hint)


def build_own(nodes: Sequence[Any], builder: Builder) -> list[WorkerCallback]:
    """Build the callbacks of a config, XGBoost's too."""
    made = build_callbacks(nodes, builder, CALLBACK_TYPES)
    return [one if isinstance(one, WorkerCallback) else OfXGBoost(one) for one in made]


class OfXGBoost(WorkerCallback):
    """Calls a callback of XGBoost."""

    def __init__(self, own: TrainingCallback) -> None:
        self._own = own
        self._log: dict[str, dict[str, list[float]]] = {}
        """Values since training began, or was resumed: by split and metric, one for each round."""

    def train_begin(self, training: Training) -> None:
        """Call ``before_training``. A learning rate schedule sets the rate of the next round, also after a resume."""
        self._same(self._own.before_training(training.model), training)
        if training.step and isinstance(self._own, LearningRateScheduler):
            self._own.after_iteration(training.model, training.step - 1, self._log)

    def step_begin(self, training: Training, batch: Any) -> None:
        """Call ``before_iteration``."""
        if self._own.before_iteration(training.model, training.step, self._log):
            training.stop()

    def step_end(self, training: Training, batch: Any) -> None:
        """Call ``after_iteration``."""
        for name, value in training.metrics.items():
            split, _, metric = name.rpartition("/")
            self._log.setdefault(split, {}).setdefault(metric, []).append(value)
        if self._own.after_iteration(training.model, training.step - 1, self._log):
            training.stop()

    def train_end(self, training: Training) -> None:
        """Call ``after_training``."""
        self._same(self._own.after_training(training.model), training)

    def _same(self, model: Any, training: Training) -> None:
        if model is not training.model:
            raise TrainingError(
                f"{KEY}: {type(self._own).__name__} returns another model, but checkpoints contain the trained one.",
                "Return the model that it gets.",
            )
