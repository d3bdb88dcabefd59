"""The two of Ray's servers that a driver can't do without, whoever started them: its machine's raylet, and the head."""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

Place = tuple[str, int]
"""Host and port."""

NOWHERE: Place = ("", 0)
PERIOD_SECONDS = 1.0
"""How often the head, which may be another machine, is asked whether it is lost."""
RECENT_SECONDS = 0.02
"""How long an answer of the head counts, where a call of Ray's would wait for it."""
CONNECT_SECONDS = 1.0
RAY_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""The variable that says how long Ray waits for a head that does not answer before it ends this process."""
RAY_PATIENCE_SECONDS = 60.0
MARGIN_SECONDS = 20.0
"""How long before that the head counts as lost."""
UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)
RESET = struct.pack("ii", 1, 0)
"""Value of ``SO_LINGER``: a connection leaves nothing behind when it is closed, however many there are."""


class RayServers:
    """Finds out that Ray's servers are gone before Ray ends this process for it, without a message.

    Args:
        raylet: Place of the raylet of this machine. One that can't be reached from here at the start is not watched.
        head: Place of the head (``gcs_server``), likewise. It may be restarted, for which Ray waits.
    """

    def __init__(self, raylet: Place, head: Place) -> None:
        self._raylet = raylet if _error_of(raylet) is None else None
        self._head = head if _error_of(head) is None else None
        self._asked_at = time.monotonic()
        self._silent_since: float | None = None
        """When the head did not answer first, since it answered last."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Have another process watch by its own clock."""
        return RayServers, (self._raylet or NOWHERE, self._head or NOWHERE)

    @classmethod
    def of_this_process(cls, nodes: Iterable[Mapping[str, Any]]) -> RayServers:
        """Return those that this process is connected to.

        Args:
            nodes: Those of the cluster, as ``ray.nodes()`` lists them.
        """
        import ray

        context = ray.get_runtime_context()
        node = context.get_node_id()
        places = [(one["NodeManagerAddress"], one["NodeManagerPort"]) for one in nodes if one["NodeID"] == node]
        host, _, port = context.gcs_address.rpartition(":")
        return cls(places[0] if places else NOWHERE, (host.strip("[]"), int(port)))

    @property
    def head_answers(self) -> bool:
        """Whether the head answers now: else calls of Ray's wait until it does, or end this process."""
        return self._ask_head(RECENT_SECONDS if self._silent_since is None else PERIOD_SECONDS)

    @property
    def lost(self) -> str | None:
        """Which of them is gone, in words; None: neither."""
        if self._raylet is not None and isinstance(_error_of(self._raylet), ConnectionRefusedError):
            return "Ray's process on this machine (raylet)"
        if self._ask_head(PERIOD_SECONDS) or self._silent_since is None:
            return None
        is_over = time.monotonic() - self._silent_since > _patience_seconds()
        return "the head of the Ray cluster (gcs_server)" if is_over else None

    def _ask_head(self, period_seconds: float) -> bool:
        now = time.monotonic()
        if self._head is not None and now - self._asked_at > period_seconds:
            self._asked_at = now
            error = _error_of(self._head)
            is_silent = isinstance(error, ConnectionError | TimeoutError) or (error and error.errno in UNREACHABLE)
            self._silent_since = (self._silent_since or now) if is_silent else None
        return self._silent_since is None


def _error_of(place: Place) -> OSError | None:
    """Return why a server can't be reached; None if it can. Only some errors are those of the server."""
    if place == NOWHERE:
        return OSError("nowhere")
    try:
        with socket.create_connection(place, CONNECT_SECONDS) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    except OSError as error:
        return error
    return None


def _patience_seconds() -> float:
    """Return how long the head may be silent: a little less than for Ray, which ends the process then."""
    seconds = RAY_PATIENCE_SECONDS
    with suppress(ValueError):
        seconds = float(os.environ.get(RAY_PATIENCE, seconds))
    return max(0.0, seconds - MARGIN_SECONDS)
