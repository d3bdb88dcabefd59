"""The keys that trainers which learn in epochs share. The docstring under a field is the user's documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from rtrain.config.needs import Need, Rules
from rtrain.config.schema import one_of


def _comes_too_late(every: int | None, last: int | None) -> bool:
    return every is not None and last is not None and every > last


BY_EPOCH = Need(
    met=lambda way: not _comes_too_late(way.trainer.eval_every_epochs, way.trainer.max_epochs),
    otherwise="the run ends before so many epochs are over",
    instead="Evaluate more often, or at the end only: trainer.eval_every_epochs=null",
    keys=("trainer.max_epochs",),
)
BY_STEP = Need(
    met=lambda way: not _comes_too_late(way.trainer.eval_every_steps, way.trainer.max_steps),
    otherwise="the run ends before so many steps are taken",
    instead="Evaluate more often, or at the end only: trainer.eval_every_steps=null",
    keys=("trainer.max_steps",),
)
SAVED_BY_EPOCH = Need(
    met=lambda way: not _comes_too_late(way.conf.run.checkpoint.every_epochs, way.trainer.max_epochs),
    otherwise="the run ends before so many epochs are over",
    instead="Write checkpoints more often, or none by epoch: run.checkpoint.every_epochs=null",
    keys=("trainer.max_epochs",),
)
SAVED_BY_STEP = Need(
    met=lambda way: not _comes_too_late(way.conf.run.checkpoint.every_steps, way.trainer.max_steps),
    otherwise="the run ends before so many steps are taken",
    instead="Write checkpoints more often, or none by step: run.checkpoint.every_steps=null",
    keys=("trainer.max_steps",),
)
CAN_SKIP = Need(
    met=lambda way: False,
    otherwise="this trainer leaves no step out",
    instead="End the run at a loss that is no number: run.failure.nan_loss=stop",
    keys=("trainer.type",),
)
EVALUATES = Need(
    met=lambda way: way.trainer.evaluate_split != "none",
    otherwise="trainer.evaluate_split=none evaluates nothing",
    instead="Name a split: trainer.evaluate_split=val",
    keys=("trainer.evaluate_split",),
)


@dataclass(kw_only=True)
class EarlyStoppingConf:
    """Stop when a metric no longer gets better."""

    monitor: str | None = None
    """Metric to watch, e.g. ``val/loss``; null: the one that also decides the best checkpoint."""

    mode: Annotated[str, *one_of("auto", "min", "max")] = "auto"
    """Whether smaller or larger is better; ``auto`` takes what is known of the metric, and refuses one of which nothing
    is."""

    patience: Annotated[int, Field(ge=1)] = 5
    """Evaluations in a row without improvement that end the run."""

    min_delta: Annotated[float, Field(ge=0)] = 0.0
    """Change that counts as an improvement."""


@dataclass(kw_only=True)
class LimitsConf:
    """How long to train, in which steps, and what is measured."""

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("batch_size", "global_batch_size"),)
    needs: ClassVar[Rules] = (EVALUATES.of("eval_batch_size"),)
    follows: ClassVar[Rules] = (
        SAVED_BY_EPOCH.of("run.checkpoint.every_epochs"),
        SAVED_BY_STEP.of("run.checkpoint.every_steps"),
    )

    max_epochs: Annotated[int, Field(ge=1)] | None = None
    """Passes over the training data; null for no limit."""

    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Optimizer steps; null for no limit."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training, those before a resume counted in; null for no limit."""

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows per worker and step; give this or ``global_batch_size``. 32 without either."""

    global_batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows of all workers per step, cut as evenly as possible: the same training on any number of workers."""

    eval_batch_size: Annotated[int, Field(ge=1)] = 256
    """Rows per worker and step of an evaluation."""

    evaluate_split: Annotated[str, *one_of("auto", "val", "test", "none")] = "auto"
    """Split to evaluate on; ``auto``: ``val`` if there is one, else ``test``, else none."""

    early_stopping: EarlyStoppingConf | None = None
    """Stop when a metric no longer gets better; null: train to the limit."""

    def check_limits(self) -> None:
        """Refuse batch sizes that contradict each other, and training without an end.

        Raises:
            ValueError: Names the keys.
        """
        if self.batch_size is not None and self.global_batch_size is not None:
            raise ValueError(
                "batch_size and global_batch_size contradict each other: give one, and set the other to null"
            )
        if self.max_epochs is None and self.max_steps is None and self.max_seconds is None:
            raise ValueError("training would never end: give max_epochs, max_steps or max_seconds")

    def rows_per_step(self, world_size: int) -> int:
        """Return the rows of all workers per step."""
        return self.global_batch_size or (self.batch_size or 32) * world_size

    def num_with_own_rows(self, world_size: int) -> int:
        """Return the number of workers, those that see the same rows counted as one."""
        return world_size


@dataclass(kw_only=True)
class EpochsConf(LimitsConf):
    """The same, and when to evaluate: what the loop of epochs follows."""

    needs: ClassVar[Rules] = (
        *LimitsConf.needs,
        EVALUATES.of("eval_every_epochs", "eval_every_steps"),
        BY_EPOCH.of("eval_every_epochs"),
        BY_STEP.of("eval_every_steps"),
    )

    shuffle: bool = True
    """Take the rows of each epoch in a new order; false: in the order of the data."""

    eval_every_epochs: Annotated[int, Field(ge=1)] | None = 1
    """Evaluate after each so many epochs; null for none by epoch."""

    eval_every_steps: Annotated[int, Field(ge=1)] | None = None
    """Evaluate after each so many optimizer steps; null for none by step."""
