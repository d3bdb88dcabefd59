"""The channel between workers and driver on a Ray cluster: batches in the cluster's key-value store.

It needs no shared disk and no separate process. Workers put numbered batches under a name that is unique to the run,
and the driver takes them out in order. The driver puts a stop reason, and the workers check for it at each flush. The
controller counts the attempts, so that records are in order whatever the clocks say, and asks the driver after each
failure.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from rtrain.cluster import key_value_store
from rtrain.cluster.ray_cluster import Cluster
from rtrain.errors import RtrainError, TrainingError, first_line
from rtrain.runs.filesystem.fork_locks import fork_safe_lock
from rtrain.runs.records import (
    AttemptFailedRecord,
    AttemptRecord,
    CheckpointRecord,
    FailureRecord,
    LogRecord,
    ProgressRecord,
    Record,
    TrialOverRecord,
    from_wire,
    to_wire,
)
from rtrain.runs.status import Status

INTERVAL_SECONDS = 0.25
"""How often workers deliver their records, and the driver takes them."""
AT_ONCE = (AttemptRecord, CheckpointRecord, FailureRecord, TrialOverRecord)
"""Records that don't wait for the next delivery."""
MOST_LINES_AT_ONCE = 20
"""Deliveries of what was printed that don't wait, and so many more in each second: each takes about a millisecond."""
CLOSE_SECONDS = 60.0
"""How long the last records may take to arrive."""
LOST_SECONDS = 2.0
"""How long those of a cluster that is lost may take: Ray ends this process in about ten."""
EVERY = "every"
"""Stands for all questions of a controller, where the answer is no."""


class Budget:
    """Allows something a number of times, and as often again in each second.

    Args:
        most: How often.
    """

    def __init__(self, most: int) -> None:
        self._most, self._left, self._counted = most, float(most), time.monotonic()

    def take(self) -> bool:
        """Return whether it is allowed once more now."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._counted) * self._most)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class WorkerChannel:
    """The worker's end; a thread delivers what was sent, a few times a second.

    Once that fails for good, whatever the worker does with the channel raises the cause.
    """

    def __init__(self, name: str, rank: int, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._interval_seconds = interval_seconds
        attempt = _attempt(name)
        self._prefix, self._stop_key = f"{name}/{attempt:06d}-{rank:05d}/", f"{name}!stop"
        self._save_key, self._saved_key = f"{name}!save", f"{name}!saved"
        self._hang_key, self._board = f"{name}!hang-{attempt}", f"{name}!board-{attempt}-"
        self._save: str | None = None
        self._old_save = key_value_store.text(self._save_key)
        self._pending: list[Record] = []
        self._progress: ProgressRecord | None = None
        self._number = 0
        self._pid, self._budget = os.getpid(), Budget(MOST_LINES_AT_ONCE)
        self._reason: str | None = None
        self._error: Exception | None = None
        self._lock, self._delivery, self._closing = fork_safe_lock(), fork_safe_lock(), threading.Event()
        self._thread = threading.Thread(target=self._deliver, name="rtrain-channel", daemon=True)
        self._thread.start()

    @property
    def stop_reason(self) -> str | None:
        """Why the driver wants the run to end."""
        self.check()
        return self._reason

    @property
    def save_requested(self) -> str | None:
        """What changes whenever the workers are asked to write a checkpoint soon: machines will come or go."""
        return self._save

    def send(self, record: Record) -> None:
        """Queue a record; of progress only the newest is delivered, with the rows of all since the last.

        A checkpoint, and what came before it, is delivered before this returns: a worker may be killed at any moment.
        So is what was printed, unless there is much of it: the last words of a process say what ended it.
        """
        self.check()
        with self._lock:
            if isinstance(record, ProgressRecord):
                rows = 0 if self._progress is None else self._progress.rows
                self._progress = replace(record, rows=record.rows + rows)
            else:
                self._pending.append(record)
        if isinstance(record, AT_ONCE) or (isinstance(record, LogRecord) and self._is_sent_at_once(record)):
            self.flush()
        if isinstance(record, CheckpointRecord) and self._save is not None:
            key_value_store.put(self._saved_key, self._save)

    def _is_sent_at_once(self, record: LogRecord) -> bool:
        """Return whether what was printed doesn't wait: the end of a line; a fork has no way to the store."""
        return record.text.endswith("\n") and os.getpid() == self._pid and self._budget.take()

    def check(self) -> None:
        """Raise what has ended the delivery, if anything has."""
        if self._error is not None:
            raise self._error

    def report_hang(self) -> None:
        """Tell the other workers of this attempt that this one hangs."""
        key_value_store.put(self._hang_key, "1")

    def peer_hang_reported(self) -> bool:
        """Return whether a worker of this attempt hangs."""
        return key_value_store.get(self._hang_key) is not None

    def pin(self, key: str, value: str) -> None:
        """Let the other workers of this attempt see a value."""
        key_value_store.put(self._board + key, value)

    def pinned(self, key: str) -> str | None:
        """Return the value of a key that a worker of this attempt has pinned, or None."""
        return key_value_store.text(self._board + key)

    def close(self) -> None:
        """Deliver what is left; ``check`` says whether that worked."""
        self._closing.set()
        self._thread.join(timeout=60)

    def _deliver(self) -> None:
        try:
            while not self._closing.wait(self._interval_seconds):
                self._exchange()
            self._exchange()
        except Exception as error:  # raised by whatever the worker does next with the channel
            self._error = error

    def _exchange(self) -> None:
        """Deliver what was sent, and look for what the driver and the controller want."""
        self.flush()
        self._reason = key_value_store.text(self._stop_key)
        save = key_value_store.text(self._save_key)
        # What was asked of the attempt before is done, or lost.
        self._save = None if save == self._old_save else save

    def flush(self) -> None:
        """Deliver what was sent now."""
        with self._delivery:
            with self._lock:
                batch, self._pending = self._pending, []
                if self._progress is not None:
                    batch.append(self._progress)
                    self._progress = None
            if batch:
                # Printing during the delivery, in a destructor say, starts a separate one.
                number, self._number = self._number, self._number + 1
                key_value_store.put(f"{self._prefix}{number:010d}", to_wire(_with_joined_logs(batch)))


def _with_joined_logs(records: Iterable[Record]) -> Iterator[Record]:
    """Join what was printed in a row: a million lines are few records."""
    for printed, group in groupby(records, key=lambda one: one.printed if isinstance(one, LogRecord) else None):
        if printed is not None:
            logs = [one for one in group if isinstance(one, LogRecord)]
            yield replace(logs[0], text="".join(one.text for one in logs))
        else:
            yield from group


def _attempt(name: str) -> int:
    """Return the number of the newest attempt, counted from 1; 0 before there is any."""
    return int(key_value_store.get(f"{name}!attempt") or 0)


def request_stop(name: str, reason: str) -> None:
    """Ask the workers of a channel to end."""
    key_value_store.put(f"{name}!stop", reason)


class ControllerChannel:
    """The end of the process that starts and watches the workers."""

    def __init__(self, name: str) -> None:
        self._name, self._question, self._save = name, "", ""

    def begin_attempt(self) -> None:
        """Count one more attempt; what its workers send comes after everything that was sent before."""
        key_value_store.put(f"{self._name}!attempt", str(_attempt(self._name) + 1))

    def request_save(self) -> None:
        """Ask the workers to write a checkpoint soon."""
        self._save = secrets.token_hex(8)
        key_value_store.put(f"{self._name}!save", self._save)

    def saved(self) -> bool:
        """Return whether a checkpoint was completed since they were asked."""
        return key_value_store.text(f"{self._name}!saved") == self._save

    def ask(self, failed: AttemptFailedRecord) -> None:
        """Tell the driver how the attempt ended; its records are in order behind those of the workers."""
        self._question = secrets.token_hex(8)
        key = f"{self._name}/{_attempt(self._name):06d}-99999/{time.monotonic_ns():020d}"
        key_value_store.put(key, to_wire([replace(failed, question=self._question)]))

    def answer(self) -> bool | None:
        """Return whether to try again, as the driver decided on the last question; None until it did."""
        found = json.loads(key_value_store.get(f"{self._name}!answer") or b"{}")
        return bool(found["again"]) if found.get("question") in (self._question, EVERY) else None


class DriverChannel:
    """The driver's end; a thread hands every record to ``accept`` as it comes, with the name of its channel.

    Args:
        name: Of the channel.
        accept: Takes a record.
        interval_seconds: How often records are taken.
        cluster: Where the other ends are; None: it outlives this process, and is not watched.
    """

    def __init__(
        self,
        name: str,
        accept: Callable[[Any, str], None],
        interval_seconds: float = INTERVAL_SECONDS,
        cluster: Cluster | None = None,
    ) -> None:
        self.name, self._accept, self._interval_seconds = name, accept, interval_seconds
        self._cluster = cluster
        self._closing = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._collect, name="rtrain-collect", daemon=True)
        self._thread.start()

    def request_stop(self, reason: str) -> None:
        """Ask all workers to end the run."""
        request_stop(self.name, reason)

    def answer(self, question: str, *, again: bool) -> None:
        """Tell the controller whether to try again."""
        key_value_store.put(f"{self.name}!answer", json.dumps({"question": question, "again": again}))

    def give_up(self) -> None:
        """Ask all workers to end the run, and the controller not to try again."""
        self.request_stop(Status.INTERRUPTED)
        self.answer(EVERY, again=False)

    def check(self) -> None:
        """Raise what recording raised, or what has ended the connection to the workers."""
        if isinstance(self._error, RtrainError):
            raise self._error
        if self._error is not None:
            raise TrainingError(
                f"reports of the workers could not be recorded: {first_line(self._error)}"
            ) from self._error

    def close(self) -> None:
        """Take what is left, and remove the run's keys; ``check`` says whether that worked.

        A cluster of this process's own ends soon, and the keys with it. One that is lost answers nothing any more.
        """
        self._closing.set()
        self._thread.join(timeout=LOST_SECONDS)
        deadline = time.monotonic() + CLOSE_SECONDS
        while self._thread.is_alive() and time.monotonic() < deadline and not self.is_cut_off:
            self._thread.join(timeout=self._interval_seconds)
        if self._cluster is None or (self._cluster.session is None and not self._cluster.is_lost):
            for key in key_value_store.keys(self.name):
                key_value_store.remove(key)

    @property
    def is_cut_off(self) -> bool:
        """Whether records may be left that can not be taken, as the cluster is lost."""
        return self._thread.is_alive() and self._cluster is not None and self._cluster.is_lost

    def _collect(self) -> None:
        try:
            while not self._closing.wait(self._interval_seconds):
                self._take()
            self._take()
        except Exception as error:  # raised by check() in the thread that follows the run
            self._error = error

    def _take(self) -> None:
        for key in sorted(key_value_store.keys(f"{self.name}/")):
            if b"!" in key:  # what is asked of the other end
                continue
            batch = key_value_store.get(key)
            channel = key.decode().rsplit("/", 2)[0]
            for record in from_wire(batch) if batch else ():
                self._accept(record, channel)
            key_value_store.remove(key)
