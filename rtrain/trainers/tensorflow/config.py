"""What a config may say to the tensorflow trainer; each field's docstring is its documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import WORKERS, Need, Rules
from rtrain.trainers.loops.custom.conf import TrainLoopConf, loop_needs
from rtrain.trainers.loops.epochs.conf import MEASURED, EpochsConf
from rtrain.trainers.loops.epochs.too_late import schedules_of

AVERAGES = Need(
    met=lambda way: bool(way.trainer.optimizer.get("use_ema")),
    otherwise="the optimizer keeps no averages of the weights",
    instead="Keep them: +trainer.optimizer.use_ema=true",
    keys=("trainer.optimizer",),
)


@dataclass(kw_only=True)
class Conf(TrainLoopConf, EpochsConf):
    """Trains a Keras 3 model on TensorFlow, with any number of workers."""

    foreign: ClassVar[tuple[str, ...]] = ("torch", "rtrain.models.torch", "rtrain.trainers.torch")
    """Modules whose classes this trainer can't use: options of config groups that build them are refused."""
    homes: ClassVar[Mapping[str, Sequence[str]]] = {
        "model": ("rtrain.models.keras",),
        "optimizer": ("keras.optimizers",),
        "loss": ("keras.losses",),
        "metrics": ("keras.metrics",),
    }
    """Modules that have what each part may be built of."""
    needs: ClassVar[Rules] = (
        *loop_needs(),
        *EpochsConf.needs,
        *MEASURED,
        schedules_of("optimizer"),
        WORKERS.of("num_threads"),
        AVERAGES.of_found(
            lambda way: [f"trainer.optimizer.{one}" for one in way.trainer.optimizer if one.startswith("ema_")]
        ),
    )
    follows: ClassVar[Rules] = (*TrainLoopConf.follows, *EpochsConf.follows)

    model: dict[str, Any] = field(default_factory=dict)
    """The model, by ``_target_``: a class of ``keras.Model``, or a function that returns one. Images come as (height,
    width, channels). ``auto`` for input_shape, num_classes, in_features, in_channels and out_features takes the value
    from the dataset."""

    optimizer: dict[str, Any] = field(default_factory=dict)
    """The Keras optimizer, by ``_target_``, e.g. ``keras.optimizers.Adam``. ``auto`` for decay_steps in it is the
    number of steps of the whole run."""

    loss: dict[str, Any] | None = None
    """The Keras loss, by ``_target_``; targets are numbers of classes, not one-hot. Null: cross entropy, of logits
    unless the last layer ends in softmax or sigmoid, binary where two classes share one output, or squared error for a
    regression."""

    metrics: dict[str, Any] = field(default_factory=dict)
    """Metrics of each evaluation in addition to loss and accuracy or errors: name to a Keras metric by ``_target_``."""

    callbacks: list[Any] = field(default_factory=list)
    """Keras callbacks, by ``_target_``; each worker has its own. Checkpoints contain the numbers that they remember,
    and not the weights that they keep."""

    deterministic: bool = True
    """Use deterministic operations, so that the same seed gives the same numbers."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of each Ray worker; null: as many as it has cores."""

    def __post_init__(self) -> None:
        if self.train_loop is not None:
            return
        for name in ("model", "optimizer"):
            if "_target_" not in getattr(self, name):
                raise ValueError(f"{name} is not chosen: give it a _target_, e.g. keras.optimizers.Adam")
        self.check_limits()
