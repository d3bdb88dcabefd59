"""The two of Ray's servers that a driver can't do without, whoever started them: its machine's raylet, and the head."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any

Place = tuple[str, int]
"""Host and port."""

HEAD_PERIOD_SECONDS = 1.0
"""How often the head is asked, which may be another machine."""
CONNECT_SECONDS = 1.0
RAY_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""The variable that says how long Ray waits for a head that does not answer before it ends this process."""
MARGIN_SECONDS = 20.0
"""How long before that the head counts as lost."""


class RayServers:
    """Finds out that Ray's servers are gone before Ray ends this process for it, without a message.

    Args:
        raylet: Place of the raylet of this machine. One that can't be reached from here at the start is not watched.
        head: Place of the head (``gcs_server``), likewise. It may be restarted, for which Ray waits.
    """

    def __init__(self, raylet: Place, head: Place) -> None:
        self._raylet = raylet if answers(raylet) else None
        self._head = head if answers(head) else None
        self._asked_at = self._answered_at = time.monotonic()

    @classmethod
    def of_this_process(cls, nodes: Iterable[Mapping[str, Any]]) -> RayServers:
        """Return those that this process is connected to.

        Args:
            nodes: Those of the cluster, as ``ray.nodes()`` lists them.
        """
        import ray

        context = ray.get_runtime_context()
        node = context.get_node_id()
        here = next(one for one in nodes if one["NodeID"] == node)
        host, _, port = context.gcs_address.rpartition(":")
        return cls((here["NodeManagerAddress"], here["NodeManagerPort"]), (host.strip("[]"), int(port)))

    @property
    def head_answers(self) -> bool:
        """Whether the head answers at this moment: else calls of Ray's wait until it does, or end this process."""
        self._asked_at = time.monotonic()
        is_there = self._head is None or answers(self._head)
        if is_there:
            self._answered_at = self._asked_at
        return is_there

    @property
    def lost(self) -> str | None:
        """Which of them is gone, in words; None: neither."""
        if self._raylet is not None and not answers(self._raylet):
            return "Ray's process on this machine (raylet)"
        if time.monotonic() - self._asked_at > HEAD_PERIOD_SECONDS and self.head_answers:
            return None
        if self._asked_at - self._answered_at > _patience_seconds():
            return "the head of the Ray cluster (gcs_server)"
        return None


def answers(place: Place) -> bool:
    """Tell whether a server listens there."""
    try:
        socket.create_connection(place, CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _patience_seconds() -> float:
    """Return how long the head may be silent: a little less than for Ray, which ends the process then."""
    return max(0.0, float(os.environ.get(RAY_PATIENCE, 60)) - MARGIN_SECONDS)
