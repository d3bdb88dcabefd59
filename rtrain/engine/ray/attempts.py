"""The attempts of one run on Ray, as the driver follows them: what ended each, and whether another one is made."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from rtrain.cluster.ray_cluster import is_alive
from rtrain.config.schema import RtrainConf
from rtrain.engine.crash import Crash, read_crash
from rtrain.engine.failures import (
    FailureReason,
    Retries,
    ending_for_memory,
    ending_of,
    is_killed_for_memory,
    told,
)
from rtrain.engine.ray.channel import DriverChannel
from rtrain.errors import NoRoomError, TrainingError, first_line
from rtrain.process.interrupts import StopRequest
from rtrain.runs.events import Event
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import (
    AttemptFailedRecord,
    AttemptRecord,
    CheckpointRecord,
    FailureKind,
    FailureRecord,
    ProgressRecord,
    RunRecord,
)

WAIT_SECONDS = 0.1
"""Interval at which the wait for the next attempt listens for a stop request."""


class Attempts:
    """Receives every record of the run, and answers the controller's questions.

    Args:
        recorder: Keeps the records.
        conf: The run's config.
        stop: Whether the run should end anyway.
        are_there: The workers have waited for this run.
    """

    def __init__(self, recorder: Recorder, conf: RtrainConf, stop: StopRequest, *, are_there: bool = False) -> None:
        self._recorder, self._conf, self._stop = recorder, conf, stop
        self._retries = Retries(conf.run.failure)
        self._lock = threading.Lock()
        self._are_there = are_there
        self._question: AttemptFailedRecord | None = None
        self._suspect: tuple[FailureReason, str] | None = None
        """A worker's death, and the machine that may have died before it."""
        self._due: float | None = None
        self._running = self._progress = False
        self._furthest = self._count = 0
        self._waiting_since = time.monotonic()
        self.ending: FailureReason | None = None
        """What ended the newest attempt that ended before its time."""
        self.excused = False
        """The run was asked to stop, so failures no longer matter."""

    def accept(self, record: RunRecord | AttemptFailedRecord) -> None:
        """Take one record; called by the thread that collects them."""
        with self._lock:
            match record:
                case AttemptFailedRecord():
                    self._question = record
                    return
                case AttemptRecord():
                    self._begin()
                case (
                    Event(step=step)
                    | ProgressRecord(step=step)
                    | CheckpointRecord(entry={"step": step})
                    | FailureRecord(step=int(step))
                ):
                    self._progress |= step > self._furthest
                    self._furthest = max(self._furthest, step)
        self._recorder.accept(record)

    def _begin(self) -> None:
        if self._running:
            message = "continues with another number of workers"
            self._recorder.end_attempt(FailureReason(kind=FailureKind.RESIZED, message=message).facts())
        else:
            self._name_lost_node()
        self._suspect = None
        self._recorder.failures.clear()
        self._running, self._progress = True, False
        self._count += 1

    def _name_lost_node(self) -> None:
        """Correct the previous attempt's failure reason: Ray reports a dead process before it reports the lost node."""
        if self._suspect is None:
            return
        ending, node = self._suspect
        if not is_alive(node):
            lost = replace(ending, kind=FailureKind.NODE_LOST, message=f"the machine of worker {ending.rank} was lost")
            self._recorder.end_attempt(lost.facts())

    def answer(self, channel: DriverChannel) -> None:
        """Answer the controller's question, if there is one, once the wait before the next attempt is over."""
        with self._lock:
            question = self._question
        if question is None:
            return
        if self._are_there and not self._count:  # they have failed before this run began
            self._are_there = False
            self._reply(channel, question, again=True)
            return
        again = self.go_on_after(self._ending_of(question)) if self._due is None else not self._stopped()
        if again and self._due is not None and time.monotonic() < self._due:
            return
        self._due = None
        self._reply(channel, question, again=again)

    def release(self, channel: DriverChannel) -> None:
        """Have workers start again that have failed when the run was over already: the next run wants them."""
        if self._question is not None:
            self._reply(channel, self._question, again=True)

    def _reply(self, channel: DriverChannel, asked: AttemptFailedRecord, *, again: bool) -> None:
        with self._lock:
            self._question = None
        channel.answer(asked.question, again=again)

    def go_on_after(self, ending: FailureReason) -> bool:
        """Record how an attempt ended, and return whether another one is made, after ``wait``."""
        if ending.kind == FailureKind.NO_WORKERS:
            self.ending = ending
            return self._may_wait_longer()
        progress = self.end(ending)
        if self._stop.reason is not None:
            self.excused = ending.type is None
            return False
        seconds = self._retries.wait_after(ending, progress=progress)
        if seconds is None:
            return False
        self._due = time.monotonic() + seconds
        when = f" in {seconds:.1f} seconds" if seconds else ""
        self._recorder.observer.notice(f"{ending.message.partition(chr(10))[0]}; starting again{when}")
        return True

    def end(self, ending: FailureReason) -> bool:
        """Record how an attempt ended, and return whether it got further than all before it."""
        with self._lock:
            progress, self._running = self._progress, False
        self.ending, self._waiting_since = ending, time.monotonic()
        self._recorder.end_attempt(ending.facts())
        return progress

    def _may_wait_longer(self) -> bool:
        """Return whether to keep trying for workers that don't start."""
        if self._stopped():
            return False
        now = self._due = time.monotonic()
        return now - self._waiting_since < self._longest_wait()

    def wait(self) -> bool:
        """Let the time before the next attempt pass; return False if the run is to stop meanwhile."""
        while self._due is not None and time.monotonic() < self._due and self._stop.reason is None:
            time.sleep(WAIT_SECONDS)
        self._due = None
        return not self._stopped()

    def _stopped(self) -> bool:
        """Return whether the run is asked to stop while no worker runs."""
        self.excused = self._stop.reason is not None
        return self.excused

    def error(self, raised: BaseException) -> TrainingError:
        """Return the error that ends the run, where Ray ended it with ``raised``."""
        if self.ending is None:
            return TrainingError(f"training failed: {first_line(raised)}", str(raised).strip()[-2000:])
        # Errors of workers that only lost their connection are not the run's.
        cause = (self.ending.rank, self.ending.type)
        self._recorder.failures = [one for one in self._recorder.failures if (one.rank, one.type) == cause]
        refusal = self._retries.refusal
        tries = f"Gave up after {self._count} attempts: {refusal}." if refusal and self._count > 1 else ""
        if self.ending.bug and self._count == 1 and refusal:
            tries = f"Not retried: {refusal}."
        kind = NoRoomError if self.ending.kind == FailureKind.NO_WORKERS and not self._count else TrainingError
        error = kind(self.ending.message, told(self.ending, self._recorder.run_dir, tries))
        error.cause_type = self.ending.type
        error.cause = getattr(raised, "worker_failures", {}).get(self.ending.rank)
        return error

    def _ending_of(self, failed: AttemptFailedRecord) -> FailureReason:
        if failed.kind == FailureKind.NO_WORKERS:
            return self._no_workers()
        if failed.kind == FailureKind.WORKER_DIED and is_killed_for_memory(failed.message):
            return ending_for_memory("a worker that started")
        if failed.kind == FailureKind.WORKER_DIED:
            message = "a worker failed while it started"
            return FailureReason(kind=failed.kind, message=message, hint=failed.message[-1000:])
        if failed.kind == FailureKind.PREEMPTED:
            return FailureReason(kind=failed.kind, message="a machine of the run is being removed")
        ending = ending_of(self._recorder.failures, failed.workers, failed.oom_kills, self._crashes(failed))
        if ending.kind == FailureKind.WORKER_DIED and ending.rank is not None and ending.rank < len(failed.nodes):
            self._suspect = ending, failed.nodes[ending.rank]
        return ending

    def _crashes(self, failed: AttemptFailedRecord) -> dict[int, Crash]:
        found = {one.rank: read_crash(self._recorder.run_dir, one.rank) for one in failed.workers}
        return {rank: crash for rank, crash in found.items() if crash is not None}

    def _no_workers(self) -> FailureReason:
        scaling, seconds = self._conf.scaling, self._longest_wait()
        if self._count:
            return FailureReason(
                kind=FailureKind.NO_WORKERS,
                message=f"resources for {scaling.min_workers} workers did not return within {seconds:g} seconds.",
                hint="Raise run.failure.wait_seconds, or resume with fewer workers: rtrain resume RUN num_workers=...",
            )
        return FailureReason(
            kind=FailureKind.NO_WORKERS,
            message=f"the {scaling.min_workers} workers did not start within {seconds:g} seconds.",
            hint="Use fewer workers, wait until the cluster is free, or raise scaling.start_timeout_seconds.",
        )

    def _longest_wait(self) -> float:
        conf = self._conf
        return conf.run.failure.wait_seconds if self._count else conf.scaling.start_timeout_seconds
