"""Train one trial in this process, which may train others before and after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtrain.cluster.ray_cluster import Cluster
from rtrain.config.composed import Composed
from rtrain.config.targets.forgetting import project_state_forgotten
from rtrain.config.trials import PauseAt, Plan
from rtrain.datasets.base import Dataset
from rtrain.engine.ray.worker_group import Group
from rtrain.errors import NoRoomError, RtrainError, TrainingError
from rtrain.process.interrupts import StopRequest
from rtrain.runs.events import Event
from rtrain.runs.filesystem.files import private_files
from rtrain.runs.filesystem.lock import wait_until_free
from rtrain.runs.manifest import MANIFEST
from rtrain.runs.observer import Observer
from rtrain.runs.records import NoticeRecord, ProgressRecord, TrialOutputRecord, TrialOverRecord, TrialRecord
from rtrain.runs.status import Status
from rtrain.sweeps.record.catching_up import PATIENCE_SECONDS
from rtrain.sweeps.record.sweep_record import best_of
from rtrain.training.fit import train_prepared
from rtrain.training.preparation import Prepared, check_job, check_run_storage, try_job
from rtrain.training.resuming import Resumption, find_resumption


@dataclass(frozen=True, kw_only=True)
class Task:
    """A trial to be trained."""

    plan: Plan
    cluster: Cluster | None
    """Where its workers are; None: this process is the worker."""
    num_threads: int | None
    """Cores that this process may use, if it is; None: all."""


def train_trial(
    task: Task, dataset: Dataset | None, observer: Observer, stop: StopRequest, group: Group | None = None
) -> dict[str, Any] | None:
    """Train or resume a trial; return ``type`` and ``message`` of its failure, or None.

    Args:
        task: The trial.
        dataset: Its data.
        observer: Notified of the progress.
        stop: Says when it is to end.
        group: The workers that train it, if it needs several.
    """
    composed, pause = task.plan.composed, task.plan.pause
    if pause is not None:
        observer = PausingObserver(observer, pause, stop)
    try:
        with _clean(composed.project_root, private=composed.conf.run.private):
            task.plan.job.run(lambda _: _train(task, dataset, observer, stop, group))
    except (RtrainError, OSError) as error:
        return {"type": _type_of(error), "message": str(error)}
    return None


def _type_of(error: BaseException) -> str:
    """Return the class of the exception that a trial failed by, on whatever worker."""
    if isinstance(error, NoRoomError):  # whichever way Ray says it
        return type(error).__name__
    on_worker = error.cause_type if isinstance(error, TrainingError) else None
    return on_worker or type(error.__cause__ or error).__name__


def _train(task: Task, dataset: Dataset | None, observer: Observer, stop: StopRequest, group: Group | None) -> None:
    began, composed = time.monotonic(), task.plan.composed
    wait_until_free(composed.run_dir, PATIENCE_SECONDS)
    resumption = begun(composed, observer, task.plan.may_change)
    job, plugin = check_job(composed, dataset, observer)
    if not task.plan.tried:
        try_job(job, plugin)
    ready = Prepared(
        composed=composed,
        job=job,
        plugin=plugin,
        cluster=task.cluster,
        storage=check_run_storage(composed, observer),
        stop=stop,
        seconds=time.monotonic() - began,
        num_threads=task.num_threads,
        group=group,
    )
    train_prepared(ready, composed.run_dir, observer, resumption)


def begun(composed: Composed, observer: Observer, may_change: Collection[str] = ()) -> Resumption | None:
    """Return the run of a trial, if it was begun before.

    Args:
        composed: The trial.
        observer: Notified of anything unusual.
        may_change: Keys that may have other values than when it was begun.
    """
    there = (composed.run_dir / MANIFEST).exists()
    return find_resumption(composed, composed.run_dir if there else None, observer.notice, may_change)


class PausingObserver:
    """Watches a run, and ends it with the report at which it is to pause."""

    def __init__(self, observer: Observer, pause: PauseAt, stop: StopRequest) -> None:
        self._observer, self._pause, self._stop = observer, pause, stop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observer, name)

    def event(self, event: Event) -> None:
        """Pass the report on, and stop the run if it is the one to pause at."""
        self._observer.event(event)
        length = event.step if self._pause.unit == "steps" else event.epoch
        if length >= self._pause.length and self._pause.metric in event.metrics:
            self._stop.ask(Status.INTERRUPTED, self._pause.reason)


@contextmanager
def _clean(project_root: Path, *, private: bool) -> Iterator[None]:
    """Leave nothing of a trial behind for the next one."""
    with project_state_forgotten(project_root), private_files(private):
        yield


class ForwardingObserver:
    """Watches a run and tells it on as records."""

    def __init__(self, tell: Callable[[TrialRecord], None]) -> None:
        self._tell = tell

    def stage(self, name: str) -> None:
        """Say nothing: stages last seconds."""

    def notice(self, text: str) -> None:
        """Tell it on."""
        self._tell(NoticeRecord(text=text))

    def started(self, run_dir: Path, manifest: Any) -> None:
        """Say nothing: whoever started it knows."""

    def progress(self, record: ProgressRecord) -> None:
        """Tell it on."""
        self._tell(record)

    def event(self, event: Event) -> None:
        """Tell it on."""
        self._tell(event)

    def printed(self, text: str) -> None:
        """Tell it on."""
        self._tell(TrialOutputRecord(text=text))

    def ended(self, run_dir: Path, manifest: Any) -> None:
        """Tell what came of it."""
        self._tell(
            TrialOverRecord(
                status=manifest.status,
                reason=manifest.exit_reason,
                lacks_copy=manifest.lacks_copy,
                best=best_of(manifest),
            )
        )
