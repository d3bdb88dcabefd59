"""Ray Train's actor by which workers wait for each other, started by the first that does: most never do.

It would be a process more at each start, with all that a worker imports: a fifth of what a short run computes. Not on
a cluster that was joined: there the controller speaks with the actor too, when machines are taken away.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.v2._internal.execution.worker_group import state, worker_group

_ray_class = worker_group.SynchronizationActor
_started: dict[str, Any] = {}
"""Handles by name: Ray ends an actor when the process that has started it holds no handle any more."""


def start_late(is_late: bool) -> None:
    """Have the next worker groups of this process start the actor late, or with the workers as Ray does.

    An actor that starts late ends with the worker that has started it.
    """
    worker_group.SynchronizationActor = _LateClass(_ray_class, {}) if is_late else _ray_class
    state._shutdown_sync_actor = _end


def _end(actor: Any) -> None:
    if not isinstance(actor, _LateActor):
        ray.kill(actor)


@dataclass(frozen=True)
class _LateClass:
    """Stands in for the class of the actor in Ray's worker group."""

    actor_class: Any
    options_given: dict[str, Any]

    def options(self, **options: Any) -> _LateClass:
        """Return it with how the actor is to be started."""
        return _LateClass(self.actor_class, options)

    def remote(self, **arguments: Any) -> _LateActor:
        """Return what has the method of the actor that workers call; each of them gets a copy."""
        name = f"rtrain-synchronization-{secrets.token_hex(8)}"
        return _LateActor(self.actor_class, {**self.options_given, "name": name, "get_if_exists": True}, arguments)


@dataclass(frozen=True)
class _LateActor:
    actor_class: Any
    options: dict[str, Any]
    arguments: dict[str, Any]

    @property
    def broadcast_from_rank_zero(self) -> _Broadcast:
        """Its method of this name."""
        return _Broadcast(self)

    def started(self) -> Any:
        """Return the actor, which the first that calls this has started."""
        name = self.options["name"]
        if name not in _started:
            _started[name] = self.actor_class.options(**self.options).remote(**self.arguments)
        return _started[name]


@dataclass(frozen=True)
class _Broadcast:
    actor: _LateActor

    def remote(self, *, world_size: int, data: Any, **others: Any) -> Any:
        """Return a reference to what rank 0 sends, when all workers have called it; a single one has it already."""
        if world_size == 1:
            return ray.put(data)
        return self.actor.started().broadcast_from_rank_zero.remote(world_size=world_size, data=data, **others)
