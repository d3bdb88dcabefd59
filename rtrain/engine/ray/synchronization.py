"""Where workers wait for each other on a cluster that rtrain started: in the process of rank 0.

Ray Train has an actor for it: a process more at each start, with all that a worker imports, a fifth of what a short run
computes. On a cluster that was joined it stays: the controller tells it when machines are taken away.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Protocol

import ray
from ray import cloudpickle
from ray.train.v2._internal.exceptions import BroadcastCollectiveTimeoutError
from ray.train.v2._internal.execution.worker_group import state, worker_group

from rtrain.cluster import key_value_store

THIS_MACHINE = "127.0.0.1"
LOOK_SECONDS = 0.005
"""How often a worker tries to find rank 0, before they meet for the first time."""
MOST_NAME_BYTES = 100
_ray_class = worker_group.SynchronizationActor


def meet_at_rank_zero(is_used: bool) -> None:
    """Have the workers of this process's next groups meet in the process of rank 0, or else in Ray's actor."""
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
        return Meeting(f"rtrain-meeting-{secrets.token_hex(16)}", timeout_s)


@dataclass
class Meeting:
    """A place where the workers of a group wait for each other, any number of times.

    Args:
        name: Where the cluster's store has the port of rank 0, which answers those who know the name.
        timeout_seconds: How long they wait; None: as long as it takes.
        number: How often they have met, as this worker knows it. One that has waited in vain has not met the others.
    """

    name: str
    timeout_seconds: float | None = None
    number: int = 0
    _place: _Place | None = None

    @property
    def broadcast_from_rank_zero(self) -> _Broadcast:
        """The actor's method of this name."""
        return _Broadcast(self)

    def meet(self, rank: int, size: int, data: Any = None) -> Any:
        """Return what rank 0 brings, when all workers are here.

        Args:
            rank: Of this worker.
            size: Number of workers.
            data: What it brings.

        Raises:
            BroadcastCollectiveTimeoutError: The others did not come in time.
        """
        if size == 1:
            return data
        began = time.monotonic()
        if self._place is None:
            self._place = _Host(self.name, size, self.timeout_seconds) if rank == 0 else _Guest(self)
        missing, brought = self._place.meet(rank, self.number + 1, cloudpickle.dumps(data) if rank == 0 else b"")
        if missing:
            raise BroadcastCollectiveTimeoutError(time.monotonic() - began, missing, self.timeout_seconds)
        self.number += 1
        return cloudpickle.loads(brought) if rank else data


class _Place(Protocol):
    """How a worker meets the others."""

    def meet(self, rank: int, number: int, brought: bytes) -> tuple[list[int], bytes]:
        """Wait for the others.

        Args:
            rank: Of this worker.
            number: How often they will have met.
            brought: By rank 0: what all get.

        Returns:
            Those who have not come in time, and what rank 0 has brought.
        """


class _Host:
    """In the process of rank 0: knows who has come. A thread waits for each of the others in its place."""

    def __init__(self, name: str, size: int, timeout_seconds: float | None) -> None:
        self._name, self._timeout = name.encode(), timeout_seconds
        self._came = [0] * size
        """How often each of them has."""
        self._brought = {0: b""}
        """By number: that of a meeting that is over may not have been fetched by all."""
        self._changed = threading.Condition()
        self._listener = Listener((THIS_MACHINE, 0), backlog=size)
        threading.Thread(target=self._accept, name="rtrain-meeting", daemon=True).start()
        key_value_store.put(name, str(self._listener.address[1]))

    def meet(self, rank: int, number: int, brought: bytes = b"") -> tuple[list[int], bytes]:
        """Wait until all have come as often; one that waits in vain has not come."""
        with self._changed:
            self._came[rank] = number
            if rank == 0:
                self._brought = {number - 1: self._brought[number - 1], number: brought}
            self._changed.notify_all()
            if self._changed.wait_for(lambda: min(self._came) >= number, self._timeout):
                return [], self._brought[number]
            missing = [one for one, came in enumerate(self._came) if came < number]
            self._came[rank] = number - 1
            return missing, b""

    def _accept(self) -> None:
        while True:
            guest = self._listener.accept()
            threading.Thread(target=self._answer, args=(guest,), name="rtrain-meeting", daemon=True).start()

    def _answer(self, guest: Connection[Any, Any]) -> None:
        """Wait for one of the others, as often as it asks; until its process ends."""
        with guest, suppress(EOFError, OSError):
            if secrets.compare_digest(guest.recv_bytes(MOST_NAME_BYTES), self._name):
                _send_small(guest)
                while True:
                    guest.send(self.meet(*guest.recv()))


class _Guest:
    """In the process of another rank: asks rank 0."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._host: Connection[Any, Any] | None = None

    def meet(self, rank: int, number: int, brought: bytes = b"") -> tuple[list[int], bytes]:
        """Have rank 0 wait until all have come as often. If its process ends, this one will be ended, too."""
        try:
            if self._host is None:
                self._host = self._find_host()
            if self._host is not None:
                self._host.send((rank, number))
                found: tuple[list[int], bytes] = self._host.recv()
                return found
        except (EOFError, OSError):
            threading.Event().wait(self._meeting.timeout_seconds)
        return [0], b""

    def _find_host(self) -> Connection[Any, Any] | None:
        """Return a connection to rank 0; None if it does not come in time."""
        began, limit = time.monotonic(), self._meeting.timeout_seconds
        while (port := key_value_store.text(self._meeting.name)) is None:
            if limit is not None and time.monotonic() - began > limit:
                return None
            time.sleep(LOOK_SECONDS)
        host = Client((THIS_MACHINE, int(port)))
        _send_small(host)
        host.send_bytes(self._meeting.name.encode())
        return host


def _send_small(connection: Connection[Any, Any]) -> None:
    """Have a connection send what is small without a wait for more."""
    with socket.socket(fileno=os.dup(connection.fileno())) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(frozen=True)
class _Broadcast:
    meeting: Meeting

    def remote(self, *, world_rank: int, world_size: int, data: Any, **_: Any) -> Any:
        """Return a reference to what rank 0 brings, when all workers have called it."""
        return ray.put(self.meeting.meet(world_rank, world_size, data))
