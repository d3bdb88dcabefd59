"""The keys that trainers which learn in epochs share. The docstring under a field is the user's documentation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.needs import Need, Rules
from rtrain.config.value_types.texts import one_of
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.epochs.too_late import (
    BY_EPOCH,
    BY_STEP,
    BY_STEP_OF_ROWS,
    EARLIER,
    ENDED_BY_RUN,
    ENDED_BY_TRAINER,
    EVALUATED,
    IN_TIME,
    JUDGED,
    LOGGED_BY_STEP,
    SAVED_BY_EPOCH,
    SAVED_BY_STEP,
    SAVED_BY_STEP_OF_ROWS,
    SOONER,
    WATCHED,
)

CAN_SKIP = Need(
    met=lambda way: False,
    otherwise="this trainer skips no steps",
    instead="End the run at a loss that is not a number: run.failure.nan_loss=stop",
    keys=("trainer.type",),
)
EVALUATES = Need(
    met=lambda way: way.trainer.evaluate_split != "none",
    otherwise="trainer.evaluate_split=none evaluates nothing",
    instead="Set a split: trainer.evaluate_split=val",
    keys=("trainer.evaluate_split",),
)
SHUFFLES = Need(
    met=lambda way: way.trainer.shuffle,
    otherwise="trainer.shuffle=false uses the rows in the order of the data",
    instead="Shuffle them: trainer.shuffle=true",
    keys=("trainer.shuffle",),
)
MEASURED = (EVALUATES.of("metrics"), EVALUATED.of("metrics"))
"""The rules of metrics, of trainers that take more of them."""


@dataclass(kw_only=True)
class LimitsConf:
    """How long to train, in which steps, and what is measured."""

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("batch_size", "global_batch_size"),)
    needs: ClassVar[Rules] = (
        EVALUATES.of("eval_batch_size"),
        EVALUATED.of("eval_batch_size"),
        ENDED_BY_RUN.of("max_seconds"),
    )
    follows: ClassVar[Rules] = (
        SAVED_BY_EPOCH.of("run.checkpoint.every_epochs"),
        SAVED_BY_STEP.of("run.checkpoint.every_steps"),
        IN_TIME.of("run.checkpoint.every_seconds"),
        ENDED_BY_TRAINER.of("run.stop.max_seconds"),
    )

    max_epochs: Annotated[int, Field(ge=1)] | None = None
    """Passes over the training data; null for no limit."""

    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of optimizer steps; null for no limit."""

    max_seconds: Annotated[float, Field(gt=0)] | None = None
    """Seconds of training, those before a resume counted in; null for no limit."""

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows per worker and backward pass; give this or ``global_batch_size``. 32 without either."""

    global_batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows of all workers per backward pass, cut as evenly as possible: the same training on any number of workers."""

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
            raise ValueError("batch_size and global_batch_size contradict each other: set one of them to null")
        if self.max_epochs is None and self.max_steps is None and self.max_seconds is None:
            raise ValueError("training would never end: set max_epochs, max_steps or max_seconds")

    def num_steps(self, steps_per_epoch: int) -> int | None:
        """Return the optimizer steps of the whole run; None when only the clock ends it."""
        limits = [] if self.max_epochs is None else [self.max_epochs * steps_per_epoch]
        return min([*limits, *([] if self.max_steps is None else [self.max_steps])], default=None)

    def steps_per_epoch(self, info: Any, num_workers: int) -> int:
        """Return the optimizer steps of one pass.

        Args:
            info: What is known of the dataset.
            num_workers: 0 for training in this process.
        """
        num_rows: int = info.num_rows["train"]
        return math.ceil(num_rows / self.rows_per_step(self.num_with_own_rows(max(1, num_workers))))

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
        BY_STEP_OF_ROWS.of("eval_every_steps"),
        WATCHED.of("early_stopping"),
        JUDGED.of("early_stopping"),
        EARLIER.of("max_steps"),
        SOONER.of("max_epochs"),
    )
    follows: ClassVar[Rules] = (
        *LimitsConf.follows,
        SAVED_BY_STEP_OF_ROWS.of("run.checkpoint.every_steps"),
        LOGGED_BY_STEP.of("run.log_every_steps"),
        SHUFFLES.of_dataset("num_shuffle_rows"),
    )

    accumulate_steps: Annotated[int, Field(ge=1)] = 1
    """Backward passes per optimizer step, whose gradient is that of all their rows. The last step of an epoch cuts the
    rows that are left into as many parts."""

    shuffle: bool = True
    """Shuffle the rows in every epoch; false: keep the order of the data."""

    callbacks: list[Any] = field(default_factory=list)
    """Callbacks on each worker, by ``_target_``: classes of yours that inherit ``rtrain.WorkerCallback``."""

    eval_every_epochs: Annotated[int, Field(ge=1)] | None = 1
    """Evaluate every n epochs; null: don't evaluate by epoch."""

    eval_every_steps: Annotated[int, Field(ge=1)] | None = None
    """Evaluate every n optimizer steps; null: don't evaluate by step."""

    def rows_per_step(self, world_size: int) -> int:
        """Return the rows of all workers per optimizer step."""
        return super().rows_per_step(world_size) * self.accumulate_steps

    def num_evaluations(self, steps_per_epoch: int) -> int | None:
        """Return how often a run is evaluated at most while it trains; None when only the clock ends it."""
        steps = self.num_steps(steps_per_epoch)
        by_epochs = None if self.eval_every_epochs is None else self.eval_every_epochs * steps_per_epoch
        every = [one for one in (by_epochs, self.eval_every_steps) if one is not None]
        if steps is None:
            return None if every else 0
        return sum(steps // one for one in every) - (steps // math.lcm(*every) if len(every) > 1 else 0)
