"""Where workers wait for each other on a cluster that rtrain started: in its key-value store.

Ray Train has an actor for it: a process more at each start, with all that a worker imports, a fifth of what a short run
computes. On a cluster that was joined it stays: the controller tells it when machines are taken away.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ray
from ray import cloudpickle
from ray.train.v2._internal.exceptions import BroadcastCollectiveTimeoutError
from ray.train.v2._internal.execution.worker_group import state, worker_group

from rtrain.cluster import key_value_store

LOOK_SECONDS = 0.001
LONGEST_LOOK_SECONDS = 0.05
"""How often a worker looks for the others: the longer it has waited, the less often."""
LARGE = 10_000
"""Characters of data above which it has a separate key: workers that wait read the other one again and again."""
_ray_class = worker_group.SynchronizationActor


class _TooLateError(Exception):
    """Another worker has not come in time; the store's own time-outs are other errors."""


def use_store(is_used: bool) -> None:
    """Have the workers of this process's next groups meet in the store, or by Ray's actor."""
    worker_group.SynchronizationActor = _Meetings if is_used else _ray_class
    state._shutdown_sync_actor = _end


def _end(meeting: Any) -> None:
    if not isinstance(meeting, Meeting):
        ray.kill(meeting)


class _Meetings:
    """Stands in for the class of the actor in Ray's worker group."""

    @classmethod
    def options(cls, **_: Any) -> type[_Meetings]:
        """Return this: there is no process that could be placed."""
        return cls

    @classmethod
    def remote(cls, timeout_s: float | None, **_: Any) -> Meeting:
        """Return what has the method of the actor that workers call; each of them gets a copy."""
        return Meeting(f"rtrain-meeting-{secrets.token_hex(8)}", timeout_s)


@dataclass
class Meeting:
    """A place where the workers of a group wait for each other, any number of times.

    Args:
        name: What its keys in the store begin with.
        timeout_seconds: How long they wait; None: as long as it takes.
        number: How often they have met, as this worker knows it. One that has waited in vain has not met the others.
    """

    name: str
    timeout_seconds: float | None = None
    number: int = 0

    @property
    def broadcast_from_rank_zero(self) -> _Broadcast:
        """The actor's method of this name."""
        return _Broadcast(self)

    def meet(self, rank: int, size: int, data: Any = None) -> Any:
        """Return what rank 0 brings, when all workers are here.

        Rank 0 waits for all others, and then says so; none of them can be any further before.

        Args:
            rank: Of this worker.
            size: Number of workers.
            data: What it brings.

        Raises:
            BroadcastCollectiveTimeoutError: The others did not come in time.
        """
        number, began = self.number + 1, time.monotonic()
        try:
            data = self._lead(size, number, data) if rank == 0 else self._follow(rank, number)
        except _TooLateError:
            late = [one for one in range(1, size) if one != rank and self._came(one)[0] < number]
            waited = time.monotonic() - began
            raise BroadcastCollectiveTimeoutError(waited, late or [0], self.timeout_seconds) from None
        self.number = number
        return data

    def _lead(self, size: int, number: int, data: Any) -> Any:
        """As rank 0, wait for the others, and say that all are here; large data is there before."""
        if size == 1:
            return data
        self._wait_for(range(1, size), number)
        brought = cloudpickle.dumps(data).hex()
        if len(brought) > LARGE:
            key_value_store.put(f"{self.name}/data", brought)
            brought = ""
        self._come(0, f"{number} {brought}")
        return data

    def _follow(self, rank: int, number: int) -> Any:
        """As another rank, come, and return what rank 0 brings; one that has waited in vain has not come."""
        self._come(rank, str(number))
        try:
            brought = self._wait_for([0], number)
        except _TooLateError:
            self._come(rank, str(self.number))
            raise
        return cloudpickle.loads(bytes.fromhex(brought or key_value_store.text(f"{self.name}/data") or ""))

    def _wait_for(self, ranks: Iterable[int], number: int) -> str:
        """Wait until all of these have come as often; return what the last of them has brought."""
        began, brought = time.monotonic(), ""
        for rank in ranks:
            came, brought = self._came(rank)
            while came < number:
                waited = time.monotonic() - began
                if self.timeout_seconds is not None and waited >= self.timeout_seconds:
                    raise _TooLateError
                time.sleep(min(LONGEST_LOOK_SECONDS, LOOK_SECONDS + waited / 10))
                came, brought = self._came(rank)
        return brought

    def _come(self, rank: int, what: str) -> None:
        key_value_store.put(f"{self.name}/{rank}", what)

    def _came(self, rank: int) -> tuple[int, str]:
        """Return how often a worker has come, and what it has brought."""
        number, _, brought = (key_value_store.text(f"{self.name}/{rank}") or "0").partition(" ")
        return int(number), brought


@dataclass(frozen=True)
class _Broadcast:
    meeting: Meeting

    def remote(self, *, world_rank: int, world_size: int, data: Any, **_: Any) -> Any:
        """Return a reference to what rank 0 brings, when all workers have called it."""
        return ray.put(self.meeting.meet(world_rank, world_size, data))
