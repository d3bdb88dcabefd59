"""The keys of a custom train loop. Each trainer that has a counterpart in Ray Train takes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema

from rtrain.config.needs import LOOP, SEVERAL_WORKERS, WORKERS, Need, Rules

DECLARED = Need(
    met=lambda way: way.trainer.train_loop is None,
    otherwise="trainer.train_loop does the training",
    instead="The loop gets trainer.train_loop_config: set it there",
    keys=("trainer.train_loop",),
)
DATA = Need(
    met=lambda way: way.conf.dataset is not None or bool(way.conf.datasets),
    otherwise="there is no data to split",
    instead="Set some: datasets, or dataset",
    keys=("dataset", "datasets"),
)
DEVICE = Need(
    met=lambda way: way.trainer.train_loop is None or WORKERS.met(way),
    otherwise="in this process, trainer.train_loop uses the GPU it finds",
    instead="Choose the device in the loop, or train on Ray workers: num_workers=1",
    keys=("trainer.train_loop", "scaling.num_workers"),
    portable=True,
)

OF_LOOPS = ("train_loop_config", "arguments", "validation_config", "datasets_to_split", "predictor")
"""The keys that have a meaning for a loop alone; it decides what to make of them when it resumes."""


def loop_needs(*honoured: str) -> Rules:
    """Return the rules of a trainer's keys: with a train loop, the keys that declare the training have no effect.

    Args:
        honoured: Names of keys that apply to a loop too, in addition to limits.
    """
    limits = ("max_seconds", "max_steps")
    return (
        DECLARED.of_all(but=("train_loop", *OF_LOOPS, *limits, *honoured)),
        LOOP.of(*(name for name in OF_LOOPS if name not in honoured)),
        DATA.of("datasets_to_split"),
        SEVERAL_WORKERS.of("datasets_to_split"),
    )


def _check_names(value: Any) -> Any:
    if value == "all" or (isinstance(value, list) and all(isinstance(one, str) and one for one in value)):
        return value
    raise ValueError("must be all, or a list of names")


_NAMES = {"anyOf": [{"const": "all", "type": "string"}, {"type": "array", "items": {"type": "string"}}]}


@dataclass(kw_only=True)
class ValidationConf:
    """What validates the checkpoints that ``train_loop`` reports with ``validation``."""

    function: str
    """``module:function`` of yours, which takes the checkpoint, a ``ray.train.Checkpoint``, and returns metrics."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Its other arguments by name; those of a ``ValidationTaskConfig`` come on top."""

    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    """Maximum duration; null for no limit."""


@dataclass(kw_only=True)
class TrainLoopConf:
    """A custom train loop, in place of what the other keys declare."""

    needs: ClassVar[Rules] = loop_needs()
    follows: ClassVar[Rules] = (
        DECLARED.of("run.log_every_steps", "run.failure.nan_loss", "run.failure.max_skipped_steps"),
        DECLARED.of("run.checkpoint.every_epochs", "run.checkpoint.every_steps", "run.checkpoint.every_seconds"),
        DECLARED.of("run.checkpoint.upload", "run.checkpoint.on_exit"),
        DEVICE.of("scaling.use_gpu"),
    )

    train_loop: str | None = None
    """Your train loop, ``module:function``, as Ray Train's trainer of this name takes it
    (``train_loop_per_worker``); in place of all keys of the trainer but the next five, and ``max_seconds`` and
    ``max_steps``, which end it at a report."""

    train_loop_config: dict[str, Any] = field(default_factory=dict, metadata={"checked": False})
    """The config that is passed to ``train_loop``."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of ``train_loop`` by name, in addition to its config or in place of it: ``{lr: 0.1}``."""

    validation_config: ValidationConf | None = None
    """What validates checkpoints, as Ray's ``ValidationConfig`` names it; null: nothing does."""

    datasets_to_split: Annotated[Any, AfterValidator(_check_names), WithJsonSchema(_NAMES)] = "all"
    """Data sets whose rows the workers share: all, or a list of names, as Ray's ``DataConfig`` has it. Of the others,
    ``[]`` for all of them, each worker has every row."""

    predictor: str | None = None
    """What makes a predictor of a checkpoint that ``train_loop`` reported, ``module:function``: it gets the folder, and
    returns a function of a batch of columns. A class is taken too. Null: models that Ray's callbacks for Hugging Face,
    Keras, XGBoost and LightGBM report are known by their files. ``rtrain predict`` and ``rtrain evaluate`` use it."""
