"""What is free on the nodes of a cluster, so that a trial starts only where all of its workers fit at once.

Nothing else keeps trials from waiting for each other forever: a trial that held half of what it needs while another one
held the other half.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

SLACK = 1e-6
LOOK_SECONDS = 0.2
"""How often a cluster is asked what is free."""
Nodes = Mapping[str, Mapping[str, float]]
"""Resources of nodes, by their ids."""


@dataclass(frozen=True)
class Shape:
    """What a trial asks for."""

    num_workers: int
    worker: tuple[tuple[str, float], ...]
    """What each worker reserves, by Ray's names."""
    strategy: str = "PACK"
    """As Ray places them: ``STRICT_PACK`` and ``STRICT_SPREAD`` bind, the others are wishes."""
    most: int = 0
    """How many workers it takes where there is room, if that is more."""


class Room:
    """The free resources of each node.

    Args:
        nodes: Total resources of each node.
    """

    def __init__(self, nodes: Iterable[Mapping[str, float]]) -> None:
        self._free: dict[Hashable, dict[str, float]] = {key: dict(node) for key, node in enumerate(nodes)}
        self._taken: dict[Hashable, tuple[Shape, Counter[Hashable]]] = {}

    def fits(self, shape: Shape) -> bool:
        """Tell whether all workers have room now."""
        return self._has_room(shape)

    def _has_room(self, shape: Shape) -> bool:
        return self._places(shape) is not None

    def widened(self, shape: Shape) -> Shape:
        """Return the shape with as many workers as have room now and it takes, but no fewer than it needs."""
        wider = (replace(shape, num_workers=number) for number in range(shape.most, shape.num_workers, -1))
        return next(filter(self._has_room, wider), shape)

    def take(self, owner: Hashable, shape: Shape) -> list[Hashable]:
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

    def _add(self, shape: Shape, places: Counter[Hashable], sign: int) -> None:
        for key, count in places.items():
            node = self._free.get(key, {})  # one that has left the cluster takes what it had with it
            for name, amount in shape.worker:
                node[name] = node.get(name, 0) + sign * count * amount

    def _places(self, shape: Shape) -> Counter[Hashable] | None:
        """Return how many workers each node takes, or None if they don't fit."""
        fitting = {key: self._fitting(node, shape) for key, node in self._free.items()}
        if shape.strategy == "STRICT_PACK":
            fitting = {key: count if count >= shape.num_workers else 0 for key, count in fitting.items()}
        elif shape.strategy == "STRICT_SPREAD":
            fitting = {key: min(1, count) for key, count in fitting.items()}
        places: Counter[Hashable] = Counter()
        for key, count in fitting.items():
            places[key] = min(count, shape.num_workers - places.total())
        return +places if places.total() == shape.num_workers else None

    @staticmethod
    def _fitting(node: Mapping[str, float], shape: Shape) -> int:
        amounts = [(name, amount) for name, amount in shape.worker if amount > 0]
        return min(int(node.get(name, 0) / amount + SLACK) for name, amount in amounts)


class JoinedRoom(Room):
    """The room on a cluster that others use as well, and whose nodes come and go.

    Args:
        look: Returns the total and the available resources of the nodes that there are.
    """

    def __init__(self, look: Callable[[], tuple[Nodes, Nodes]]) -> None:
        super().__init__([])
        self._look, self._looked_at = look, -math.inf
        self._total: Nodes = {}
        self._available: Nodes = {}

    def fits(self, shape: Shape) -> bool:
        """Look at the cluster, and tell whether all workers have room now, besides what others hold."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._follow(*self._look())
            self._looked_at = time.monotonic()
        return self._has_room(shape)

    def _has_room(self, shape: Shape) -> bool:
        # What the cluster says is late: what was taken a moment ago is not seen yet. So its word counts only where it
        # says that more is held than was taken here.
        if not super()._has_room(shape):
            return False
        return not self._others_hold(shape) or Room(self._available.values()).fits(shape)

    def _follow(self, total: Nodes, available: Nodes) -> None:
        self._total, self._available = total, available
        for key in self._free.keys() - total.keys():
            del self._free[key]
        for key, node in total.items():
            self._free.setdefault(key, dict(node))

    def _others_hold(self, shape: Shape) -> bool:
        """Tell whether others hold some of what a shape asks for."""
        held = Counter[str]()
        for key, node in self._total.items():
            here, left = self._free[key], self._available.get(key, {})
            held.update({name: here.get(name, 0) - left.get(name, 0) for name in node})
        return any(held[name] > SLACK for name, amount in shape.worker if amount > 0)
