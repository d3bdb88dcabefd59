"""What a config may say to the jax trainer; each field's docstring is its documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rtrain.config.needs import Need, Rules
from rtrain.trainers.loops.custom.conf import TrainLoopConf, loop_needs
from rtrain.trainers.loops.epochs.conf import MEASURED, EpochsConf
from rtrain.trainers.loops.epochs.too_late import schedules_of

DECLARED = Need(
    met=lambda way: way.trainer.train_function is None,
    otherwise="trainer.train_function does the training",
    instead="Pass settings to the function in trainer.train_function_config",
    keys=("trainer.train_function",),
)
FUNCTION = Need(
    met=lambda way: way.trainer.train_function is not None,
    otherwise="there is no custom train function",
    instead="Set one: trainer.train_function=module:function",
    keys=("trainer.train_function",),
)


@dataclass(kw_only=True)
class Conf(TrainLoopConf, EpochsConf):
    """Trains a Flax module with Optax on one world of JAX processes, or calls a function of your own in it."""

    foreign: ClassVar[tuple[str, ...]] = ("torch", "rtrain.models.torch", "rtrain.trainers.torch")
    """Modules whose classes this trainer can't use: options of config groups that build them are refused."""
    homes: ClassVar[Mapping[str, Sequence[str]]] = {
        "model": ("rtrain.models.jax",),
        "optimizer": ("optax",),
        "loss": ("optax",),
    }
    """Modules that have what each part may be built of."""
    needs: ClassVar[Rules] = (
        DECLARED.of_all(but=("train_function", "train_function_config")),
        FUNCTION.of("train_function_config"),
        *loop_needs(),
        *EpochsConf.needs,
        *MEASURED,
        schedules_of("optimizer"),
    )
    follows: ClassVar[Rules] = (
        DECLARED.of("run.log_every_steps", "run.failure.nan_loss", "run.failure.max_skipped_steps"),
        DECLARED.of("run.checkpoint.every_epochs", "run.checkpoint.every_steps", "run.checkpoint.every_seconds"),
        DECLARED.of("run.checkpoint.on_exit"),
        *TrainLoopConf.follows,
        *EpochsConf.follows,
    )

    model: dict[str, Any] = field(default_factory=dict)
    """The ``flax.linen`` or ``flax.nnx`` module, by ``_target_``; images come as (height, width, channels). ``auto``
    for in_channels, in_features, input_shape, num_classes and out_features takes the value from the dataset."""

    optimizer: dict[str, Any] = field(default_factory=dict)
    """The gradient transformation, by ``_target_``, e.g. ``optax.adamw``. ``auto`` for decay_steps and transition_steps
    of a schedule in it is the number of steps of the whole run."""

    loss: dict[str, Any] | None = None
    """Function of (output, target) that gives a loss for each row, by ``_target_``; its other arguments as keys. Null:
    cross entropy, or squared error for a regression."""

    metrics: dict[str, Any] = field(default_factory=dict)
    """More metrics of each evaluation: name to a function of (output, target) that gives a number for each row."""

    train_function: str | None = None
    """Your train loop, ``module:function``, in place of all of the above. It is called with the ``Worker`` on every
    rank, after ``jax.distributed`` has been initialized."""

    train_function_config: dict[str, Any] = field(default_factory=dict, metadata={"checked": False})
    """The config that ``train_function`` can read as ``worker.conf.train_function_config``."""

    def __post_init__(self) -> None:
        if self.train_function is not None or self.train_loop is not None:
            return
        for name in ("model", "optimizer"):
            if "_target_" not in getattr(self, name):
                raise ValueError(f"{name} is not chosen: give it a _target_, or set train_loop")
        self.check_limits()
