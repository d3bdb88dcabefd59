"""Ray's reports of workers that failed, as plain facts."""

from __future__ import annotations

from pathlib import Path

from ray.exceptions import OutOfMemoryError, RayActorError
from ray.train.v2._internal.exceptions import (
    InsufficientClusterResourcesError,
    WorkerGroupStartupTimeoutError,
    WorkerHealthCheckFailedError,
    WorkerHealthCheckTimeoutError,
)
from ray.train.v2.api.exceptions import PreemptionError

from rtrain.engine.failures import is_collateral
from rtrain.errors import in_brief
from rtrain.runs.records import AttemptFailedRecord, FailureKind, WorkerFailure

MEMORY_EVENTS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
"""Linux counts here how many processes of this container it has killed for want of memory; the second one is older."""


def read_failures(error: BaseException) -> AttemptFailedRecord:
    """Return the facts of an error of Ray Train."""
    workers = [_worker(rank, failure) for rank, failure in getattr(error, "worker_failures", {}).items()]
    inner = getattr(error, "controller_failure", error)
    if isinstance(inner, WorkerGroupStartupTimeoutError | InsufficientClusterResourcesError):
        kind = FailureKind.NO_WORKERS
    elif isinstance(error, PreemptionError):
        kind = FailureKind.PREEMPTED
    else:
        kind = FailureKind.EXCEPTION if workers else FailureKind.WORKER_DIED
    return AttemptFailedRecord(kind=kind, message=str(error).strip(), workers=workers)


def is_root(worker: WorkerFailure) -> bool:
    """Return whether a worker's failure can be what the others suffer from."""
    return worker.kind != FailureKind.EXCEPTION or not is_collateral(worker.type, worker.message)


def oom_kills() -> int:
    """Return how many processes of this container the system has killed for want of memory; 0 if it is not told."""
    lines = [line for path in MEMORY_EVENTS if path.is_file() for line in path.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _worker(rank: int, failure: BaseException) -> WorkerFailure:
    inner = failure.health_check_failure if isinstance(failure, WorkerHealthCheckFailedError) else failure
    message = in_brief(str(inner).strip())
    kind = FailureKind.HANG if isinstance(inner, WorkerHealthCheckTimeoutError) else FailureKind.EXCEPTION
    if isinstance(inner, OutOfMemoryError):  # Ray has killed it; the worker reports an error of another class
        kind = FailureKind.WORKER_DIED
    if isinstance(inner, RayActorError):
        node_lost = "node has died" in message or "node was terminated" in message
        kind = FailureKind.NODE_LOST if node_lost else FailureKind.WORKER_DIED
        kind = FailureKind.PREEMPTED if inner.preempted else kind
    return WorkerFailure(rank=rank, type=type(inner).__name__, message=message, kind=kind)
