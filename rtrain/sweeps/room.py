"""What is free on the nodes of a cluster, so that a trial starts only where all of its workers fit at once.

Nothing else keeps trials from waiting for each other forever: a trial that held half of what it needs while another one
held the other half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

SLACK = 1e-6


@dataclass(frozen=True)
class Shape:
    """What a trial asks for."""

    num_workers: int
    worker: tuple[tuple[str, float], ...]
    """What each worker reserves, by Ray's names."""
    strategy: str = "PACK"
    """As Ray places them: ``STRICT_PACK`` and ``STRICT_SPREAD`` bind, the others are wishes."""


class Room:
    """The free resources of each node.

    Args:
        nodes: Total resources of each node.
    """

    def __init__(self, nodes: Sequence[Mapping[str, float]]) -> None:
        self._free = [dict(node) for node in nodes]
        self._taken: dict[Hashable, tuple[Shape, Counter[int]]] = {}

    def fits(self, shape: Shape) -> bool:
        """Tell whether all workers have room now."""
        return self._places(shape) is not None

    def take(self, owner: Hashable, shape: Shape) -> list[int]:
        """Reserve the room of all workers; return the node of each.

        Raises:
            ValueError: There is no room.
        """
        places = self._places(shape)
        if places is None:
            raise ValueError(f"no room for {shape}")
        self._taken[owner] = shape, places
        self._add(shape, places, -1)
        return list(places.elements())

    def free(self, owner: Hashable) -> None:
        """Give back what was reserved."""
        shape, places = self._taken.pop(owner)
        self._add(shape, places, 1)

    def _add(self, shape: Shape, places: Counter[int], sign: int) -> None:
        for node, count in places.items():
            for name, amount in shape.worker:
                self._free[node][name] = self._free[node].get(name, 0) + sign * count * amount

    def _places(self, shape: Shape) -> Counter[int] | None:
        """Return how many workers each node takes, or None if they don't fit."""
        fitting = [self._fitting(node, shape) for node in self._free]
        if shape.strategy == "STRICT_PACK":
            fitting = [count if count >= shape.num_workers else 0 for count in fitting]
        elif shape.strategy == "STRICT_SPREAD":
            fitting = [min(1, count) for count in fitting]
        places: Counter[int] = Counter()
        for node, count in enumerate(fitting):
            places[node] = min(count, shape.num_workers - places.total())
        return +places if places.total() == shape.num_workers else None

    @staticmethod
    def _fitting(node: Mapping[str, float], shape: Shape) -> int:
        amounts = [(name, amount) for name, amount in shape.worker if amount > 0]
        return min(int(node.get(name, 0) / amount + SLACK) for name, amount in amounts)
