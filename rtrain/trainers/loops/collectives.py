"""The workers of a run as one of them sees them, whatever the framework that joins them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Collectives(Protocol):
    """All ranks, as one of them sees them."""

    @property
    def rank(self) -> int:
        """Number of this one."""

    @property
    def size(self) -> int:
        """How many there are."""

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all ranks; every rank calls it with as many."""


class Ranks(Collectives, Protocol):
    """The workers that have their own rows."""

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all ranks; every rank calls it with as many."""


@dataclass(frozen=True)
class SingleProcess:
    """The only worker there is."""

    rank: int = 0
    size: int = 1

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the values."""
        return [float(value) for value in values]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the values."""
        return [float(value) for value in values]
