"""A model in training as the loop of epochs sees it: all that differs between frameworks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rtrain.datasets.base import Batch
from rtrain.trainers.stopping import Voters


class Ranks(Voters, Protocol):
    """The workers of a run, as one of them sees them."""

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all ranks; every rank calls it with as many."""


@dataclass(frozen=True)
class Alone:
    """The only worker there is."""

    rank: int = 0
    size: int = 1

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the values."""
        return [float(value) for value in values]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the values."""
        return [float(value) for value in values]


class Learner(ABC):
    """A model, its optimizer and what belongs to them, on one rank."""

    @abstractmethod
    def take(self, batch: Batch, step: int) -> Any:
        """Do one optimizer step of all ranks together; return what ``losses`` makes the loss of.

        Args:
            batch: The rows of this rank, maybe none; ``num_global`` is known.
            step: Optimizer steps done before; random numbers depend on nothing but it, the rank and the seed.
        """

    @abstractmethod
    def losses(self, taken: Sequence[Any]) -> list[float]:
        """Return for each step, of what ``take`` gave, the sum of the losses of the rows of all ranks.

        Nothing at all where the framework tells no loss.
        """

    @abstractmethod
    def evaluate(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Return each metric over all rows of all ranks."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that training changes; on rank 0."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Take everything from what ``save`` wrote; on every rank. Executes nothing that is in it."""

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return what the manifest should tell about this worker's training, beside the rows that it saw."""

    def rate(self) -> float | None:
        """Return the learning rate, where there is one."""
        return None

    def end_epoch(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Do what is due after an epoch; return why training should end, or an empty string.

        Args:
            epoch: Epochs done.
            metrics: The newest value of each metric.
        """
        return ""
