"""What a loop reports by ``ray.train.report``: events of the run, and checkpoints that are complete or absent.

Ray itself gets none of the checkpoints: it would list them, and refuse to restart workers once
``run.checkpoint.keep`` has removed a folder of its list. All ranks copy their files into one folder with a temporary
name; once all of them have, rank 0 completes it: in the report, or, of an asynchronous one, in the thread that copies.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ray.train import Checkpoint, CheckpointUploadMode, ReportedCheckpoint, ReportedCheckpointStatus
from ray.train.v2._internal.execution.train_fn_utils import DistributedTrainFnUtils, LocalTrainFnUtils, TrainFnUtils

from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import all_checkpoints, latest_checkpoint, note_in_checkpoint, read_record
from rtrain.runs.status import SIGNALLED
from rtrain.trainers.loops.custom.reports.context import LocalContext, WorkerContext
from rtrain.trainers.loops.custom.reports.copies import Copies
from rtrain.trainers.loops.custom.reports.folders import Upload, clear_leftovers, free_name
from rtrain.trainers.loops.custom.reports.leftovers import is_leftover, mark_leftovers, threads_now
from rtrain.trainers.loops.custom.reports.log import ReportLog
from rtrain.trainers.loops.custom.reports.metrics import split_metrics
from rtrain.trainers.loops.custom.reports.records import metrics_of
from rtrain.trainers.loops.custom.reports.validation import (
    STATUS,
    Validation,
    interrupted_validations,
    validation_of,
)
from rtrain.trainers.loops.custom.reports.wishes import check_name, check_wishes
from rtrain.trainers.loops.custom.shards.local import LocalShard
from rtrain.trainers.loops.custom.shards.names import find_split
from rtrain.trainers.loops.custom.shards.turns import Board, Turns, shard_in_turn
from rtrain.trainers.worker import Worker

POLL_SECONDS = 0.005
"""How often a rank checks whether rank 0 has completed a checkpoint."""


Parts = tuple[dict[str, float], dict[str, Any], Mapping[str, Any]]
"""Of the metrics of a report the numbers, all else, and the whole as it was reported."""


Step = Callable[[], Any]
"""A step of what becomes of a checkpoint: completes or validates it, and returns the next one, or None."""


class StopTraining(BaseException):
    """Leaves the user's loop at a report, where all workers are at the same point; no ``except Exception`` holds it."""


class _Reports(TrainFnUtils):
    """``ray.train.report`` and what asks for checkpoints, in a Ray worker and in the driver alike."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self._log = worker, ReportLog(worker)
        self._threads, self._pid = threads_now(), os.getpid()
        self._is_over = self._has_warned = False
        self._newest: Upload | None = None
        """The checkpoint of the newest report."""
        self._is_in_thread = False
        """A thread copies it."""
        self._pending: Step | None = None
        """What is left to do for it in the thread of the loop, once all ranks have copied their files."""
        self._copies: Copies | None = None
        """Coordinates the copies that threads of several ranks make; None for a single one."""
        if worker.rank == 0:
            clear_leftovers(worker.run_dir)

    @property
    def number(self) -> int:
        """Number of the newest report, those before a resume counted in."""
        return self._log.number

    def report(
        self,
        metrics: dict[str, Any],
        checkpoint: Checkpoint | None = None,
        checkpoint_dir_name: str | None = None,
        checkpoint_upload_mode: CheckpointUploadMode = CheckpointUploadMode.SYNC,
        delete_local_checkpoint_after_upload: bool | None = None,
        checkpoint_upload_fn: Callable[[Checkpoint, str], Checkpoint] | None = None,
        validation: Any = False,
    ) -> None:
        """Record metrics and keep a copy of the checkpoint; end the loop here if the run is to stop.

        Raises:
            TrainingError: It asks for something that rtrain does not do.
            CheckpointError: The checkpoint can't be written.
            SystemExit: The loop that has started this thread is over; ends the thread.
        """
        self._refuse_others()
        check_wishes(checkpoint_upload_mode, checkpoint_upload_fn)
        asked = validation_of(self.worker, validation)
        # On all ranks: what one of them refuses, no other waits for.
        parts = (*split_metrics(metrics, self.worker.redact), metrics)
        in_place = checkpoint_upload_mode is CheckpointUploadMode.NO_UPLOAD
        if in_place:  # it has its name
            checkpoint_dir_name = Path(getattr(checkpoint, "path", "")).name or None
        check_name(checkpoint_dir_name, self.worker.redact)
        in_thread = checkpoint_upload_mode is CheckpointUploadMode.ASYNC
        deletes = in_thread if delete_local_checkpoint_after_upload is None else delete_local_checkpoint_after_upload
        self.worker.checkpoints.thread.wait()
        self._log.number += 1
        name, token = self._agreed_name(checkpoint_dir_name)
        self._complete()  # what is left of the one before
        upload = Upload(
            run_dir=self.worker.run_dir,
            name=name,
            token=token,
            rank=self.worker.rank,
            fill=checkpoint_upload_fn,
            delete=deletes and not in_place,
            in_place=in_place,
        )
        self._newest, self._is_in_thread = upload, in_thread
        self._keep(upload, parts, checkpoint, asked, in_thread=in_thread)
        self._leave(self._agreed_reason(in_thread=in_thread))

    def close(self) -> bool:
        """Note that the loop is over, however it ended; return whether any of its threads still run."""
        self._is_over = True
        return mark_leftovers(self._threads)

    def _refuse_others(self) -> None:
        """Refuse a fork, and end a thread of a loop that is over: its reports would count as those of this one.

        Raises:
            TrainingError: A fork of the process reports; it has no part in the record of the run.
            SystemExit: Ends the thread.
            RuntimeError: No loop is running, and this is the thread that runs them.
        """
        if os.getpid() != self._pid:
            raise TrainingError(
                "ray.train.report was called in a fork of the process that trains.",
                "Report in the process of the train loop: send it the metrics, e.g. through a multiprocessing.Queue.",
            )
        if not (self._is_over or is_leftover()):
            return
        if threading.current_thread() is threading.main_thread():
            raise RuntimeError("ray.train.report is for train loops, and none is running.")
        text = f"{threading.current_thread().name} called ray.train.report after its train loop had ended: ignored"
        if self._is_over:  # the run has ended
            logging.getLogger(__name__).warning(text)
        elif not self._has_warned:
            self._has_warned = True
            self.worker.notice(text)
        raise SystemExit

    def _agreed_name(self, wanted: str | None) -> tuple[str, str]:
        """Let rank 0 choose the name of a checkpoint, and what its temporary name ends with."""
        first = self.worker.rank == 0
        name = free_name(self.worker.run_dir, wanted, self.number) if first else ""
        agreed = self.broadcast_from_rank_zero([name, secrets.token_hex(3)])
        return agreed[0], agreed[1]

    def _keep(
        self,
        upload: Upload,
        parts: Parts,
        checkpoint: Checkpoint | None,
        validation: Validation | None,
        *,
        in_thread: bool,
    ) -> None:
        """Copy the checkpoint, in a thread if ``in_thread``, else immediately; record the metrics."""
        copy = partial(upload.copy, checkpoint)
        if not in_thread:
            copy()
        complete = self._recorded(upload, parts, validation) if self.worker.rank == 0 else _nothing
        if not in_thread:
            self._pending = complete
            return

        def complete_in_thread() -> None:
            self._pending = complete()

        task = partial(self._copy_in_thread, upload.token, copy, complete_in_thread)
        self.worker.checkpoints.thread.start(task, in_thread=True)

    def _copy_in_thread(self, token: str, copy: Callable[[], None], complete: Callable[[], None]) -> None:
        """Copy the files of a checkpoint in a thread, and complete it when all ranks have copied theirs."""
        if self._copies is not None:
            self._copies.copy(token, copy, complete)
        else:
            copy()
            complete()

    def _recorded(self, upload: Upload, parts: Parts, validation: Validation | None) -> Step:
        """Record a report of rank 0, and return what completes its checkpoint, after which it may be validated."""
        facts = {**self._log.record(*parts), **(validation.pending() if validation is not None else {})}
        unsaved = self.worker.checkpoints.unsaved
        reported = unsaved.end
        if self.worker.in_process:
            unsaved.drop(reported)  # the driver has written them

        def complete() -> Step | None:
            record = upload.complete(facts, reported, self.worker.checkpoints)
            if record is None:
                return None
            unsaved.drop(reported)
            self.worker.checkpoints.tell(record)
            return None if validation is None else partial(self._validate, upload.target, record, validation)

        return complete

    def over_before(self) -> bool:
        """Return whether the run had ended at a limit before it was resumed: then the loop is not called."""
        return bool(self._log.over_before())

    def repeat_validations(self) -> None:
        """Repeat the validations that were killed, as Ray does when a run is restored; on rank 0."""
        if self.worker.rank == 0:
            for folder, record, validation in interrupted_validations(self.worker):
                self.worker.notice(f"the validation of {folder.name} was interrupted and is repeated")
                self._validate(folder, record, validation)

    def _validate(self, folder: Path, record: Mapping[str, Any], validation: Validation) -> None:
        """Validate a complete checkpoint, and note what was found in its record and as an event."""
        found = validation.run(Checkpoint(str(folder)))
        facts = self._log.add(record, found.metrics) if found.metrics else {}
        self.worker.checkpoints.tell(note_in_checkpoint(folder, {**facts, STATUS: found.status.value}))

    def _agreed_reason(self, *, in_thread: bool) -> str:
        """Return why all ranks leave here, or an empty string; complete what all of them have copied by now."""
        reason: str = self.broadcast_from_rank_zero(self._log.reason())
        if not in_thread:
            self._complete()
        return reason

    def _complete(self) -> None:
        """Do what is left to do for a checkpoint that all ranks have copied; on rank 0."""
        while self._pending is not None:
            step, self._pending = self._pending, None
            self._pending = step()

    def _leave(self, reason: str) -> None:
        """Leave the user's loop if there is a reason."""
        if not reason:
            return
        if reason not in SIGNALLED:
            self.worker.describe_end(reason)
        raise StopTraining

    def finish(self) -> None:
        """Complete the checkpoint of the last report when the loop is over; every rank calls it."""
        self.worker.checkpoints.thread.wait()
        self._complete()

    def get_checkpoint(self) -> Checkpoint | None:
        """Return the newest checkpoint of this run, or the one that it begins with: Ray itself knows none."""
        self._wait_for_newest()
        newest = latest_checkpoint(self.worker.run_dir) or self.worker.init_dir()
        return None if newest is None else Checkpoint(str(newest))

    def get_all_reported_checkpoints(self, *_: Any, **__: Any) -> list[ReportedCheckpoint]:
        """Return the checkpoints that the run has kept, oldest first; wait for the newest, as Ray does."""
        self._wait_for_newest()
        return [_reported(folder) for folder in all_checkpoints(self.worker.run_dir)]

    def _wait_for_newest(self) -> None:
        """Wait until rank 0 has completed the checkpoint that all ranks have copied, or still copy."""
        self.worker.checkpoints.thread.wait()
        if self._newest is not None and self._is_in_thread and self._copies is not None:
            self._copies.wait(self._newest.token)
        while self._newest is not None and not self._is_in_thread and self._newest.staging.exists():
            time.sleep(POLL_SECONDS)


class RayReports(_Reports, DistributedTrainFnUtils):
    """Ray's own functions on a worker, but for reports."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        board = cast("Board", worker.channel)
        self._turns = Turns(worker, board)
        self._copies = Copies(worker.rank, worker.world_size, board)

    def barrier(self) -> None:
        """Wait for all workers."""
        with self._turns.meeting():
            super().barrier()

    def broadcast_from_rank_zero(self, data: Any) -> Any:
        """Return what worker 0 has, on all of them."""
        with self._turns.meeting():
            return super().broadcast_from_rank_zero(data)

    def get_context(self) -> WorkerContext:
        """Return what Ray's own context says, and the name of the run."""
        return WorkerContext(self.worker.run_dir)

    def finish(self) -> None:
        """Complete the checkpoint of the last report when the loop is over."""
        super().finish()
        self._turns.over()

    def get_dataset_shard(self, dataset_info: Any) -> Any:
        """Return this worker's part of a split."""
        name, _ = find_split(self.worker.dataset, dataset_info.dataset_name)
        return shard_in_turn(super().get_dataset_shard(replace(dataset_info, dataset_name=name)), name, self._turns)


class LocalReports(_Reports, LocalTrainFnUtils):
    """The same without a cluster: one worker, in this process."""

    def __init__(self, worker: Worker) -> None:
        LocalTrainFnUtils.__init__(self, experiment_name=worker.run_dir.name)
        super().__init__(worker)

    def get_context(self) -> LocalContext:
        """Return what Ray's own context says, and where checkpoints are."""
        return LocalContext(self.worker.run_dir)

    def get_dataset_shard(self, dataset_info: Any) -> LocalShard:
        """Return a split."""
        return LocalShard(find_split(self.worker.dataset, dataset_info.dataset_name)[1])


def _nothing() -> None:
    """Leave it to rank 0."""


def _reported(folder: Path) -> ReportedCheckpoint:
    record = read_record(folder)
    status = ReportedCheckpointStatus(record.get(STATUS, ReportedCheckpointStatus.COMMITTED.value))
    return ReportedCheckpoint(Checkpoint(str(folder)), metrics_of(record), status)
