"""What Ray says of workers that failed, as plain facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray.exceptions import RayActorError
from ray.train.v2._internal.exceptions import (
    InsufficientClusterResourcesError,
    WorkerGroupStartupTimeoutError,
    WorkerHealthCheckFailedError,
    WorkerHealthCheckTimeoutError,
)
from ray.train.v2.api.exceptions import PreemptionError

from rtrain.engine.failures import is_collateral
from rtrain.errors import shortened

MEMORY_EVENTS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
"""Linux counts here how many processes of this container it has killed for want of memory; the second one is older."""


def read_failures(error: BaseException) -> dict[str, Any]:
    """Return the facts of an error of Ray Train: ``cause``, ``message`` and ``workers``.

    ``cause`` is ``workers``, ``preempted``, ``start`` (a worker failed while it started) or ``resources`` (there was no
    room for the workers). Of each worker there are ``rank``, ``type``, ``message`` and ``fate``: ``raised``, ``died``,
    ``node lost``, ``preempted`` or ``hang``.
    """
    workers = [_worker(rank, failure) for rank, failure in getattr(error, "worker_failures", {}).items()]
    inner = getattr(error, "controller_failure", error)
    if isinstance(inner, WorkerGroupStartupTimeoutError | InsufficientClusterResourcesError):
        cause = "resources"
    else:
        cause = "preempted" if isinstance(error, PreemptionError) else "workers" if workers else "start"
    return {"cause": cause, "message": str(error).strip(), "workers": workers}


def is_root(worker: Mapping[str, Any]) -> bool:
    """Tell whether a worker's failure can be what the others suffer from."""
    return worker["fate"] != "raised" or not is_collateral(worker["type"], worker["message"])


def oom_kills() -> int:
    """Return how many processes of this container the system has killed for want of memory; 0 if it is not told."""
    lines = [line for path in MEMORY_EVENTS if path.is_file() for line in path.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _worker(rank: int, failure: BaseException) -> dict[str, Any]:
    inner = failure.health_check_failure if isinstance(failure, WorkerHealthCheckFailedError) else failure
    message = shortened(str(inner).strip())
    fate = "hang" if isinstance(inner, WorkerHealthCheckTimeoutError) else "raised"
    if isinstance(inner, RayActorError):
        node_lost = "node has died" in message or "node was terminated" in message
        fate = "preempted" if inner.preempted else "node lost" if node_lost else "died"
    return {"rank": rank, "type": type(inner).__name__, "message": message, "fate": fate}
