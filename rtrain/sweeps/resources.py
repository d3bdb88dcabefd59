"""Free resources on the nodes of a cluster, so that a trial starts only where all of its workers fit together.

This prevents deadlocks, in which a trial holds half of its resources and another trial holds the other half.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rtrain.cluster.scaling import fewest_and_most, worker_resources
from rtrain.config.composed import Composed

SLACK = 1e-6
LOOK_SECONDS = 0.2
"""How often a cluster is asked what is free."""
STARTING_SECONDS = 30.0
"""Longest time until what was taken is held."""
ENDING_SECONDS = 2.0
"""The same of what is given back."""
Nodes = Mapping[str, Mapping[str, float]]
"""Resources of nodes, by their ids."""


@dataclass(frozen=True)
class ResourceRequest:
    """What a trial asks for."""

    num_workers: int
    worker: tuple[tuple[str, float], ...]
    """What each worker reserves, by Ray's names."""
    strategy: str = "PACK"
    """As Ray places them: ``STRICT_PACK`` and ``STRICT_SPREAD`` bind, the others are wishes."""
    most: int = 0
    """Number of workers if resources allow, when that is more."""


def shape_of(composed: Composed, *, own_cluster: bool) -> ResourceRequest:
    """Return the resources that a trial needs."""
    scaling = composed.conf.scaling
    worker = tuple(sorted(worker_resources(scaling).items()))
    fewest, most = fewest_and_most(scaling, own_cluster=own_cluster)
    return ResourceRequest(max(1, fewest), worker, scaling.placement_strategy, most)


class ResourceTracker:
    """The free resources of each node.

    Args:
        nodes: Total resources of each node.
    """

    def __init__(self, nodes: Iterable[Mapping[str, float]]) -> None:
        self._free: dict[Hashable, dict[str, float]] = {key: dict(node) for key, node in enumerate(nodes)}
        self._taken: dict[Hashable, tuple[ResourceRequest, Counter[Hashable]]] = {}

    def fits(self, shape: ResourceRequest) -> bool:
        """Tell whether all workers have room now."""
        return self._has_room(shape)

    def _has_room(self, shape: ResourceRequest) -> bool:
        return self._places(shape) is not None

    def widened(self, shape: ResourceRequest) -> ResourceRequest:
        """Return the shape with as many workers as have room now and it takes, but no fewer than it needs."""
        wider = (replace(shape, num_workers=number) for number in range(shape.most, shape.num_workers, -1))
        return next(filter(self._has_room, wider), shape)

    def take(self, owner: Hashable, shape: ResourceRequest) -> list[Hashable]:
        """Reserve the resources of all workers; return the node of each.

        Raises:
            ValueError: Not enough resources are free.
        """
        places = self._places(shape)
        if places is None:
            raise ValueError(f"not enough resources for {shape}")
        self._taken[owner] = shape, places
        self._add(shape, places, -1)
        return list(places.elements())

    def free(self, owner: Hashable) -> None:
        """Give back what was reserved."""
        shape, places = self._taken.pop(owner)
        self._add(shape, places, 1)

    def _add(self, shape: ResourceRequest, places: Counter[Hashable], sign: int) -> None:
        for key, count in places.items():
            node = self._free.get(key, {})  # one that has left the cluster takes what it had with it
            for name, amount in shape.worker:
                node[name] = node.get(name, 0) + sign * count * amount

    def _places(self, shape: ResourceRequest) -> Counter[Hashable] | None:
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
    def _fitting(node: Mapping[str, float], shape: ResourceRequest) -> int:
        amounts = [(name, amount) for name, amount in shape.worker if amount > 0]
        return min(int(node.get(name, 0) / amount + SLACK) for name, amount in amounts)


class JoinedResourceTracker(ResourceTracker):
    """The resources of a cluster that others use as well, and whose nodes come and go.

    The cluster reports late: resources taken a moment ago are still free in it, and released ones still held.

    Args:
        look: Returns the total and the available resources of the nodes that there are.
    """

    def __init__(self, look: Callable[[], tuple[Nodes, Nodes]]) -> None:
        super().__init__([])
        self._look = look
        self._looked_at = self._took_at = self._freed_at = -math.inf
        self._available: Nodes = {}
        self._others = Counter[str]()
        """What others hold, by resource."""

    def fits(self, shape: ResourceRequest) -> bool:
        """Query the cluster, and return whether all workers fit now, given what others hold."""
        if time.monotonic() - self._looked_at > LOOK_SECONDS:
            self._follow(*self._look())
            self._looked_at = time.monotonic()
        return self._has_room(shape)

    def take(self, owner: Hashable, shape: ResourceRequest) -> list[Hashable]:
        """Reserve the resources of all workers; return the node of each."""
        self._took_at = time.monotonic()
        return super().take(owner, shape)

    def free(self, owner: Hashable) -> None:
        """Give back what was reserved."""
        self._freed_at = time.monotonic()
        super().free(owner)

    def _has_room(self, shape: ResourceRequest) -> bool:
        if not super()._has_room(shape):
            return False
        asked = {name: amount * shape.num_workers for name, amount in shape.worker if amount > 0}
        if all(self._others[name] <= SLACK for name in asked):
            return True
        left = _sum(self._free) - self._others
        return all(left[name] >= amount - SLACK for name, amount in asked.items()) and ResourceTracker(
            self._available.values()
        ).fits(shape)

    def _follow(self, total: Nodes, available: Nodes) -> None:
        self._available = available
        for key in self._free.keys() - total.keys():
            del self._free[key]
        for key, node in total.items():
            self._free.setdefault(key, dict(node))
        held = _sum(self._free) - _sum(available)  # Counters keep what is more than nothing
        now = time.monotonic()
        if now - self._took_at > STARTING_SECONDS:
            self._others = held
        elif now - self._freed_at > ENDING_SECONDS:
            self._others |= held


def _sum(nodes: Mapping[Any, Mapping[str, float]]) -> Counter[str]:
    found = Counter[str]()
    for node in nodes.values():
        found.update(node)
    return found
