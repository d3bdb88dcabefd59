"""A model in training as the loop of epochs sees it: all that differs between frameworks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtrain.datasets.base import DatasetInfo, Split
from rtrain.runs.checkpoints import Writer
from rtrain.trainers.loops.callbacks.base import WorkerCallback
from rtrain.trainers.loops.collectives import Ranks
from rtrain.trainers.loops.epochs.loader import BatchLoader
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.sharded_checkpoint import CheckpointGroup


class Learner(ABC):
    """A model, its optimizer and what belongs to them, on one rank."""

    hint: str = "Lower trainer.optimizer's learning rate, or check the data for extreme values."
    """What the user can do when a loss is not a number."""
    savers: CheckpointGroup | None = None
    """All ranks, if each of them writes a part of each checkpoint."""
    row_counts: str = "num_rows"
    """What the manifest calls the rows of each split that a rank trains on."""

    def open_loader(self, split: Split, info: DatasetInfo, ranks: Ranks) -> BatchLoader:
        """Return the rows of a split as ``train_step`` and ``evaluate`` get them."""
        return BatchLoader(split, info)

    def seed(self, number: int) -> None:  # noqa: B027 (some have no separate random numbers)
        """Make the framework's random numbers of the next step depend on ``number`` alone."""

    @abstractmethod
    def train_step(self, batch: Any, step: int) -> Any:
        """Do one optimizer step of all ranks together; return what ``step_losses`` makes the loss of.

        Args:
            batch: The rows of this rank, maybe none; ``num_global`` is known.
            step: Optimizer steps done before; random numbers depend on nothing but it, the rank and the seed. Those of
                ``random`` and NumPy do already, and those of the framework if ``seed`` sees to it.
        """

    @abstractmethod
    def step_losses(self, taken: Sequence[Any]) -> list[tuple[float, float]]:
        """Return for each step, of what ``train_step`` gave, the sum of the row losses by weight, and that of weights.

        Both are over all ranks. The first is NaN for a step that was left out; without weights, the second is the
        number of rows. Nothing at all where the framework tells no loss.
        """

    @abstractmethod
    def evaluate(self, batches: Iterable[Any]) -> dict[str, float]:
        """Return each metric over all rows of all ranks."""

    def sync(self) -> None:  # noqa: B027 (most ranks are alike)
        """Make ranks alike in what differs while they train; they all call it before each evaluation and checkpoint."""

    def non_finite(self) -> set[str]:
        """Return the names of weights and batch statistics that are NaN or infinite, as far as this rank holds them."""
        return set()

    @abstractmethod
    def snapshot(self) -> Writer:
        """Copy everything that training changes, and return what writes the copy, on rank 0; on each if it has a part.

        The copy is written before the next one is taken, possibly while training continues.
        """

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Take everything from what a snapshot wrote; on every rank. Executes nothing that is in it."""

    def load_weights(self, folder: Path) -> None:
        """Take only the weights of what a snapshot wrote; on every rank, if the plugin ``can_init``."""
        raise NotImplementedError

    def progress(self, folder: Path) -> EpochProgress:
        """Return where the training of a checkpoint was."""
        return EpochProgress.load(folder)

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """Return what the manifest should record about this worker's training, in addition to the rows that it saw."""

    def learning_rate(self) -> float | None:
        """Return the learning rate, where there is one."""
        return None

    def callbacks(self) -> Sequence[WorkerCallback]:
        """Return the callbacks of the config."""
        return ()

    def learned(self) -> tuple[Any, Any]:
        """Return what callbacks see as the model, and as its optimizer (None: nothing that they could use)."""
        return None, None

    def on_evaluation(self, value: float | None) -> None:  # noqa: B027 (most have no use for it)
        """See the newest value of the metric that decides the best checkpoint, after each evaluation."""

    def end_epoch(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Do what is due after an epoch; return why training should end, or an empty string.

        Args:
            epoch: Epochs done.
            metrics: The newest value of each metric.
        """
        return ""
