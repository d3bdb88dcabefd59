"""What the processes of a run tell each other: every record, and the JSON that it travels as.

Workers send ``RunRecord``s to the driver, whose ``Recorder`` turns them into the run directory. Ray's controller sends
``AttemptFailedRecord``s, and the process of a trial sends ``TrialRecord``s to the sweep.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from rtrain.runs.events import Event


class FailureKind(StrEnum):
    """Why an attempt ended before its time, as ``attempts[].ended_because.kind`` of the manifest says it."""

    EXCEPTION = "exception"
    OUT_OF_MEMORY = "out of memory"
    WORKER_DIED = "worker died"
    NODE_LOST = "node lost"
    PREEMPTED = "preempted"
    HANG = "hang"
    CONTROLLER_DIED = "controller died"
    CLUSTER_LOST = "cluster lost"
    NO_WORKERS = "no workers"
    """They did not start."""
    RESIZED = "resized"
    """No failure: training continues with another number of workers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressRecord:
    """How far the run is; for the display, never written."""

    step: int
    """Optimizer steps (boosting rounds) done."""
    epoch: int
    steps_per_epoch: int | None
    """None while unknown."""
    rows: int
    """Rows of all workers since the record before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerRecord:
    """Facts about one worker, for the manifest."""

    rank: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRecord:
    """Facts about the trained model, for the manifest."""

    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRecord:
    """What ended a worker, as it says itself."""

    rank: int
    type: str
    """Class of the exception, or ``engine.failures.HANG``."""
    message: str
    time: float
    """Seconds since 1970."""
    traceback: str = ""
    mistake: bool = False
    """An error class of rtrain, which stands for an error in the config or the data."""
    bug: bool = False
    """A mistake of the user's code."""
    frames: Mapping[str, Any] | None = None
    """Where it comes from, as ``own_lines`` tells it."""
    step: int | None = None
    """Optimizer steps (boosting rounds) done; 0 before the first one of this attempt."""
    place: str | None = None
    """The line in which a worker hangs."""
    seconds: float | None = None
    """How long it may go without a step."""

    def facts(self) -> dict[str, Any]:
        """Return what ``failure`` of the manifest keeps."""
        known = {name: getattr(self, name) for name in self.__slots__ if name not in ("time", "bug")}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """Training starts, at the beginning or from a checkpoint."""

    num_workers: int
    from_step: int
    from_checkpoint: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NoticeRecord:
    """A line that the user should read."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EndRecord:
    """Why training ends, where it does so by itself."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointRecord:
    """A checkpoint is complete and in its place."""

    entry: Mapping[str, Any]
    """What the manifest lists, as ``runs.checkpoints.read_record`` returns it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRecord:
    """What a worker printed or logged."""

    rank: int
    text: str
    printed: bool = True
    """By user code; not the traceback of what ended it, which the error of the run tells."""


RunRecord = (
    Event
    | ProgressRecord
    | WorkerRecord
    | ModelRecord
    | FailureRecord
    | AttemptRecord
    | NoticeRecord
    | EndRecord
    | CheckpointRecord
    | LogRecord
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerFailure:
    """The cluster's information about a failed worker."""

    rank: int
    type: str
    message: str
    kind: FailureKind
    """``EXCEPTION``, ``WORKER_DIED``, ``NODE_LOST``, ``PREEMPTED`` or ``HANG``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptFailedRecord:
    """An attempt failed, and the controller asks whether to make another one."""

    kind: FailureKind
    """``EXCEPTION``: ``workers`` says what ended it; ``WORKER_DIED``: one failed while it started; ``PREEMPTED``;
    ``NO_WORKERS``."""
    message: str
    workers: Sequence[WorkerFailure] = ()
    nodes: Sequence[str] = ()
    """Ids of the machines by rank, as far as they are known."""
    oom_kills: int = 0
    """Processes that the system has killed for want of memory since the last question."""
    question: str = ""
    """Names the question, for the answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialBeganRecord:
    """The process of a trial has started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialOverRecord:
    """What came of the run of a trial."""

    status: str
    reason: str | None
    lacks_copy: bool
    best: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialOutputRecord:
    """Lines that the workers of a trial have printed."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialDoneRecord:
    """The process of a trial is free for the next one."""

    error: Mapping[str, Any] | None
    """``type`` and ``message`` of an error outside the run itself."""


TrialRecord = (
    Event | ProgressRecord | NoticeRecord | TrialBeganRecord | TrialOutputRecord | TrialOverRecord | TrialDoneRecord
)
Record = RunRecord | AttemptFailedRecord | TrialRecord

_CLASSES: dict[str, type[Record]] = {kind.__name__: kind for kind in Record.__args__}


def to_wire(records: Iterable[Record]) -> str:
    """Return records as one JSON text; what JSON does not know becomes a text."""
    return json.dumps([{"record": type(one).__name__, **_fields(one)} for one in records], default=_plain)


def from_wire(text: str | bytes) -> list[Any]:
    """Return the records of a JSON text of ``to_wire``, each of its class."""
    return [_parse(**fields) for fields in json.loads(text)]


def _fields(record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def _plain(value: object) -> Any:
    return _fields(value) if is_dataclass(value) else str(value)


def _parse(record: str, **given: Any) -> Any:
    if record == AttemptFailedRecord.__name__:
        workers = [WorkerFailure(**{**one, "kind": FailureKind(one["kind"])}) for one in given["workers"]]
        given |= {"kind": FailureKind(given["kind"]), "workers": workers}
    return _CLASSES[record](**given)
