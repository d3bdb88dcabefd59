"""Callbacks of transformers, called by rtrain's loop as transformers' Trainer would call them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import EarlyStoppingCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.trainers.loops.callbacks.base import Training, WorkerCallback
from rtrain.trainers.loops.callbacks.build import KEY, check_trainer_callbacks
from rtrain.trainers.transformers.config import Conf

CALLBACK_TYPES = (WorkerCallback, TrainerCallback)
CALLED = (
    *("on_init_end", "on_train_begin", "on_epoch_begin", "on_step_begin", "on_step_end", "on_epoch_end"),
    *("on_evaluate", "on_save", "on_train_end"),
)
DECIDED = {
    "should_save": "run.checkpoint",
    "should_evaluate": "trainer.eval_every_epochs and trainer.eval_every_steps",
    "should_epoch_stop": "trainer.max_epochs",
    "should_log": "run.log_every_steps",
}
"""What callbacks may ask of transformers' Trainer, and the keys that decide it here."""


def check_own(nodes: Sequence[Any], builder: Builder) -> None:
    """Refuse callbacks that can't be made, and those of transformers that wait for what never happens here.

    Raises:
        ConfigError: Names the callback, and what to use instead.
    """
    for key, target, kind in check_trainer_callbacks(nodes, builder, CALLBACK_TYPES):
        if not isinstance(kind, type) or not issubclass(kind, TrainerCallback):
            continue
        where = f"{key}: {target}"
        if issubclass(kind, EarlyStoppingCallback):
            raise ConfigError(f"{where} needs transformers' Trainer.", "Use trainer.early_stopping={patience: 3}")
        if kind.__module__.startswith("transformers.integrations"):
            raise ConfigError(f"{where} needs transformers' Trainer.", "Use e.g. run.loggers=[tensorboard].")
        for name in dir(TrainerCallback):
            changed = getattr(kind, name) is not getattr(TrainerCallback, name)
            if name.startswith("on_") and name not in CALLED and changed:
                hint = f"rtrain calls: {', '.join(CALLED)}. For reports, use run.callbacks"
                raise ConfigError(f"{where} has {name}, which rtrain never calls.", hint)


class OfTransformers(WorkerCallback):
    """Calls a callback of transformers.

    Args:
        own: The callback.
        arguments: What it sees as ``TrainingArguments``.
        parts: What it gets by name: model, tokenizer, optimizer, schedule.
        notice: Takes a line for the user.
    """

    def __init__(
        self,
        own: TrainerCallback,
        arguments: TrainingArguments,
        parts: Mapping[str, Any],
        notice: Callable[[str], None],
    ) -> None:
        self._own, self._arguments, self._parts, self._notice = own, arguments, parts, notice
        self._control, self._told = TrainerControl(), set[str]()

    def train_begin(self, training: Training) -> None:
        """Call ``on_init_end`` and ``on_train_begin``."""
        self._call("on_init_end", training)
        self._call("on_train_begin", training)

    def epoch_begin(self, training: Training) -> None:
        """Call ``on_epoch_begin``."""
        self._call("on_epoch_begin", training)

    def step_begin(self, training: Training, batch: Any) -> None:
        """Call ``on_step_begin``."""
        self._call("on_step_begin", training)

    def step_end(self, training: Training, batch: Any) -> None:
        """Call ``on_step_end``."""
        self._call("on_step_end", training)

    def epoch_end(self, training: Training) -> None:
        """Call ``on_epoch_end``."""
        self._call("on_epoch_end", training)

    def evaluated(self, training: Training, metrics: Mapping[str, float]) -> None:
        """Call ``on_evaluate`` with metrics under the names of transformers: ``eval_loss`` and so on."""
        found = {f"eval_{name.rpartition('/')[2]}": value for name, value in metrics.items()}
        self._call("on_evaluate", training, metrics={**found, "epoch": training.epoch})

    def after_save(self, training: Training) -> None:
        """Call ``on_save``."""
        self._call("on_save", training)

    def train_end(self, training: Training) -> None:
        """Call ``on_train_end``."""
        self._call("on_train_end", training)

    def _call(self, name: str, training: Training, **more: Any) -> None:
        state = TrainerState(
            epoch=training.epoch,
            global_step=training.step,
            max_steps=self._arguments.max_steps,
            num_train_epochs=int(self._arguments.num_train_epochs),
            is_local_process_zero=training.rank == 0,
            is_world_process_zero=training.rank == 0,
        )
        getattr(self._own, name)(self._arguments, state, self._control, **self._parts, **more)
        if self._control.should_training_stop:
            training.stop()
        for wish, key in DECIDED.items():
            if getattr(self._control, wish) and wish not in self._told:
                self._told.add(wish)
                self._notice(f"{KEY}: {type(self._own).__name__} sets {wish}, which rtrain ignores: {key}")
        self._control = TrainerControl()


def shown_arguments(arguments: TrainingArguments, conf: Conf, run_dir: str) -> TrainingArguments:
    """Return arguments for callbacks to see: those of the config, and the lengths and places that rtrain decides."""
    shown = copy.copy(arguments)
    shown.output_dir = run_dir
    shown.max_steps = conf.max_steps or -1
    shown.num_train_epochs = conf.max_epochs or 0
    shown.gradient_accumulation_steps = conf.accumulate_steps
    return shown
