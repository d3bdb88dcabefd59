"""What a config may say to the lightning trainer; each field's docstring is its documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import SEVERAL_WORKERS, Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.trainers.loops.custom.conf import TrainLoopConf, loop_needs
from rtrain.trainers.loops.epochs.conf import EpochsConf, LimitsConf
from rtrain.trainers.loops.epochs.too_late import BY_EPOCH, JUDGED, can_stop

JUDGED_BY_EPOCH = replace(
    JUDGED,
    met=lambda way: way.resumed or can_stop(way.trainer.early_stopping, _num_evaluations(way.trainer)),
    keys=("trainer.max_epochs", "trainer.early_stopping", "trainer.trainer_args"),
    of_rows=False,
)
ALL_EPOCHS = replace(
    BY_EPOCH,
    met=lambda way: _num_evaluations(way.trainer) != 0,
    instead="Evaluate more often",
    keys=("trainer.max_epochs", "trainer.trainer_args"),
)
CLIPPED = Need(
    met=lambda way: way.trainer.trainer_args.get("gradient_clip_val") is not None,
    otherwise="no gradients are clipped",
    instead="Set a limit: +trainer.trainer_args.gradient_clip_val=1",
    keys=("trainer.trainer_args",),
)
EVALUATING = Need(
    met=lambda way: way.trainer.evaluate_split != "none",
    otherwise="trainer.evaluate_split=none evaluates nothing",
    instead="Remove one of them",
    keys=("trainer.evaluate_split",),
)
OF_EVALUATIONS = ("check_val_every_n_epoch", "val_check_interval", "limit_val_batches", "num_sanity_val_steps")


def _num_evaluations(conf: Conf) -> int | None:
    """Return how many evaluations there are at most; None where that is not known."""
    given, epochs = conf.trainer_args, conf.max_epochs
    every = given.get("check_val_every_n_epoch", 1)
    is_known = isinstance(every, int) and every > 0 and given.get("val_check_interval") is None
    return epochs // every if epochs is not None and is_known else None


@dataclass(kw_only=True)
class Conf(TrainLoopConf, LimitsConf):
    """Trains a LightningModule with Lightning's own Trainer."""

    homes: ClassVar[Mapping[str, Sequence[str]]] = {
        "module": ("rtrain.models.lightning",),
    }
    """Modules that have what each part may be built of."""
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (*LimitsConf.exclusive, ("datamodule", "/dataset"))
    needs: ClassVar[Rules] = (
        *loop_needs("num_threads"),
        *LimitsConf.needs,
        SEVERAL_WORKERS.of("find_unused_parameters", "trainer_args.sync_batchnorm"),
        JUDGED_BY_EPOCH.of("early_stopping"),
        ALL_EPOCHS.of("trainer_args.check_val_every_n_epoch"),
        CLIPPED.of("trainer_args.gradient_clip_algorithm"),
        EVALUATING.of(*(f"trainer_args.{name}" for name in OF_EVALUATIONS)),
    )
    follows: ClassVar[Rules] = (*TrainLoopConf.follows, *LimitsConf.follows)

    module: dict[str, Any] = field(default_factory=dict)
    """The ``LightningModule``, by ``_target_``. ``auto`` for in_channels, in_features, input_shape, num_classes and
    out_features takes the value from the dataset."""

    datamodule: dict[str, Any] | None = None
    """A ``LightningDataModule``, by ``_target_``, in place of ``dataset``; its loaders are shared out among workers."""

    trainer_args: dict[str, Any] = field(default_factory=dict)
    """Arguments of Lightning's ``Trainer``; callbacks, loggers, profilers and plugins by ``_target_``. Arguments about
    devices, limits and checkpoints are refused here, because rtrain has its own keys for them."""

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows of ``dataset`` per worker and batch; give this or ``global_batch_size``. 32 without either."""

    global_batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows of ``dataset`` of all workers per batch: the same training on any number of workers."""

    eval_batch_size: Annotated[int, Field(ge=1)] = 256
    """Rows of ``dataset`` per worker and step of an evaluation."""

    evaluate_split: Annotated[str, *one_of("auto", "val", "test", "none")] = "auto"
    """Split of ``dataset`` for ``validation_step``; ``auto``: ``val`` if there is one, else ``test``, else none."""

    find_unused_parameters: bool = False
    """Allow steps that don't use all weights of the module, at some cost; only needed with several workers."""

    num_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of each worker; null: as many as it has cores."""

    @classmethod
    def parameters(cls) -> dict[str, str]:
        """Return the full key of each argument of Lightning's ``Trainer`` that rtrain hands on, by its name."""
        from rtrain.trainers.lightning.arguments import OURS, trainer_arguments

        return {name: f"trainer.trainer_args.{name}" for name in trainer_arguments() if name not in OURS}

    def __post_init__(self) -> None:
        if self.train_loop is not None:
            return
        if "_target_" not in self.module:
            raise ValueError("module is not chosen: give it the _target_ of a LightningModule")
        if self.datamodule is not None and "_target_" not in self.datamodule:
            raise ValueError("datamodule needs the _target_ of a LightningDataModule")
        self.check_limits()


def as_epochs(conf: Conf) -> EpochsConf:
    """Return the limits of a training on ``dataset``, and when Lightning evaluates: by default after each epoch."""
    names = ("max_epochs", "max_steps", "max_seconds", "batch_size", "global_batch_size", "evaluate_split")
    given, inside = conf.trainer_args, conf.trainer_args.get("val_check_interval")
    return EpochsConf(
        **{name: getattr(conf, name) for name in names},
        early_stopping=conf.early_stopping,
        eval_every_epochs=given.get("check_val_every_n_epoch", 1),
        eval_every_steps=None if inside is None else 1,  # several times an epoch, or every so many steps
    )


def default_monitor(split: str | None) -> str:
    """Return the metric that decides the best checkpoint, unless the config names one.

    Args:
        split: What ``validation_step`` is called on, or None.
    """
    return "train/epoch_loss" if split is None else f"{split}/loss"
