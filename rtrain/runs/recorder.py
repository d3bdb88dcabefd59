"""Write what workers send into the run directory; on the driver."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from rtrain.runs.checkpoints import (
    NEWEST_AND_BEST,
    Retention,
    all_checkpoints,
    best_record,
    checkpoints_dir,
    prune_checkpoints,
    read_record,
)
from rtrain.runs.events import Event, EventLog, events_file, newest_first, read_events
from rtrain.runs.filesystem.files import despite_removal, named_errors, sha256_of_text, unwritable, write_atomic
from rtrain.runs.filesystem.fork_locks import fork_safe_lock
from rtrain.runs.filesystem.leftovers import clear_leftovers
from rtrain.runs.filesystem.lock import Lock
from rtrain.runs.hydra_files import read_hydra_files, restore_hydra_files
from rtrain.runs.logs import OutputLines, WorkerLogs
from rtrain.runs.manifest import CONFIG_NAME, MANIFEST, Manifest, utc_now
from rtrain.runs.observer import Observer
from rtrain.runs.records import (
    AttemptRecord,
    CheckpointRecord,
    EndRecord,
    FailureRecord,
    LogRecord,
    ModelRecord,
    NoticeRecord,
    ProgressRecord,
    RunRecord,
    WorkerRecord,
)
from rtrain.runs.status import Status

MANIFEST_INTERVAL_SECONDS = 2.0


class Recorder:
    """Keeps the files of one run up to date; safe to call from several threads."""

    def __init__(
        self,
        run_dir: Path,
        manifest: Manifest,
        observer: Observer,
        retention: Retention = NEWEST_AND_BEST,
        config: str = "",
        run_lock: Lock | None = None,
        output: OutputLines | None = None,
    ) -> None:
        self.run_dir, self.manifest, self.observer = run_dir, manifest, observer
        self.failures: list[FailureRecord] = []
        """What workers raised, in order."""
        self.retention = retention
        self._lock = fork_safe_lock()
        self._written = 0.0
        self.attempt_began: float | None = None
        """When workers first were there, by :func:`time.monotonic`."""
        self._is_closed = False
        self._config, self._run_lock, self._output = config, run_lock, output
        self._news: list[Callable[[], None]] = []
        """What the observer gets once it is written: an error of a display is not the run directory's."""
        self._logs = WorkerLogs(run_dir / "logs")
        with named_errors(run_dir):
            clear_leftovers(run_dir)
            self._hydra_files = read_hydra_files(run_dir)
            self._events = self._open()

    def _open(self) -> EventLog:
        """Create what the run directory lacks, and list the existing checkpoints."""
        checkpoints_dir(self.run_dir).mkdir(parents=True, exist_ok=True)
        (self.run_dir / "logs").mkdir(exist_ok=True)
        write_atomic(self.run_dir / CONFIG_NAME, self._config)
        restore_hydra_files(self.run_dir, self._hydra_files)
        self.manifest.config_sha256 = sha256_of_text(self._config)
        events = EventLog(events_file(self.run_dir))
        self._list_existing()
        self.manifest.write(self.run_dir)
        return events

    def write(self) -> None:
        """Write the manifest now."""
        with self._writing():
            self._write()

    def close(self) -> None:
        """Write what is open for the last time."""
        with self._writing():
            self._write()
            self._is_closed = True
            for line in () if self._output is None else self._output.rest():
                self._news.append(partial(self.observer.printed, line))
            self._events.close()
            self._logs.close()
            if self.manifest.status == Status.SUCCEEDED:
                clear_leftovers(self.run_dir)

    def accept(self, record: RunRecord) -> None:
        """Take one record of a worker."""
        # Not by _writing(), which takes longer: user code may print a million lines.
        with self._lock:
            if self._is_closed:  # a thread that user code has left behind
                level = logging.DEBUG if isinstance(record, LogRecord) else logging.WARNING  # it has been shown
                logging.getLogger(__name__).log(
                    level, "%s has ended; a late %s is ignored", self.run_dir, type(record).__name__
                )
                return
            try:
                self._take(record)
            except OSError as error:
                raise unwritable(self.run_dir, error) from error
            self._tell_news()

    def _take(self, record: RunRecord) -> None:
        match record:
            case Event():
                self._take_event(record)
            case ProgressRecord():
                self._news.append(partial(self.observer.progress, record))
            case LogRecord():
                self._logs.append(record.rank, record.text)
                if self._output is not None and (lines := self._output.feed(record)):
                    self._news.append(partial(self.observer.printed, lines))
            case CheckpointRecord():
                self._take_checkpoint(dict(record.entry))
            case AttemptRecord():
                self._take_attempt(record)
            case NoticeRecord():
                self._tell(record.text)
            case WorkerRecord():
                self.manifest.workers.setdefault(str(record.rank), {}).update(record.facts)
            case ModelRecord():
                self.manifest.model.update(record.facts)
            case FailureRecord():
                self.failures.append(record)
            case EndRecord():
                self.manifest.exit_reason = record.reason

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Let one thread write, and tell the observer what is new."""
        with self._lock:
            with named_errors(self.run_dir):
                yield
            self._tell_news()

    def _tell_news(self) -> None:
        while self._news:
            self._news.pop(0)()

    def _write(self) -> None:
        """Write the manifest into an existing run directory that no other process writes."""
        despite_removal(self._write_once)
        self._written = time.monotonic()

    def _write_once(self) -> None:
        if self._run_lock is not None:
            self._run_lock.renew()
        names = (events_file(self.run_dir).name, CONFIG_NAME)
        if missing := [name for name in names if not (self.run_dir / name).exists()]:
            self._make_again(missing)
        self.manifest.write(self.run_dir)

    def _make_again(self, missing: Sequence[str]) -> None:
        """Write again what was deleted or moved during the run."""
        whole = (self.run_dir / MANIFEST).exists()
        what = ", ".join(str(self.run_dir / name) for name in missing) if whole else str(self.run_dir)
        lost = events_file(self.run_dir).name in missing
        if lost:
            self.manifest.events_lost_until = self.manifest.step
        self._events.close()
        self._logs.close()
        self._events = self._open()
        without = ", without earlier reports" if lost else ""
        self._tell(f"{what} was deleted or moved; it is created again{without}")

    def _take_event(self, event: Event) -> None:
        self._events.append(event)
        self.manifest.step, self.manifest.epoch = event.step, event.epoch
        self._take_values(event)
        if time.monotonic() - self._written > MANIFEST_INTERVAL_SECONDS:
            self._write()
        self._news.append(partial(self.observer.event, event))

    def _take_values(self, event: Event) -> None:
        """Keep what an event says as the newest values; a name may have been a number before, and be a text now."""
        metrics, values = self.manifest.metrics, self.manifest.values
        for name in metrics.keys() & event.values.keys():
            del metrics[name]
        for name in values.keys() & event.metrics.keys():
            del values[name]
        metrics.update(event.metrics)
        values.update(event.values)

    def _take_attempt(self, record: AttemptRecord) -> None:
        if self.attempt_began is None:
            self.attempt_began = time.monotonic()
        if self.manifest.attempts:
            # Without a checkpoint, the reports of step 0 come again as well.
            again = record.from_step == 0 and not record.from_checkpoint
            self._list_existing()
            self._events.go_back(-1 if again else record.from_step)
            self._fill_in(record.from_step)
        self.manifest.attempts.append({"started_at": utc_now(), **asdict(record)})
        self._write()

    def _fill_in(self, step: int) -> None:
        """Add what checkpoints up to ``step`` know to have been reported, and no driver has lived to write."""
        known = [event for folder in all_checkpoints(self.run_dir) for event in read_events(events_file(folder))]
        first = min((event.step for event in known), default=step)
        newest = takewhile(lambda event: event.step >= first, newest_first(events_file(self.run_dir)))
        there = {(event.step, event.time) for event in newest}
        for event in known:
            if event.step <= step and (event.step, event.time) not in there:
                self._events.append(event)
                self._take_values(event)

    def end_attempt(self, why: Mapping[str, Any]) -> None:
        """Note why the newest attempt ended before its time: ``kind``, ``message``, ``rank``, ``type``."""
        with self._writing():
            if self.manifest.attempts:
                self.manifest.attempts[-1].setdefault("ended_at", utc_now())
                self.manifest.attempts[-1]["ended_because"] = dict(why)
                self._write()

    def _tell(self, text: str) -> None:
        self._news.append(partial(self.observer.notice, text))

    def _take_checkpoint(self, entry: dict[str, Any]) -> None:
        others = [old for old in self.manifest.checkpoints if old["name"] != entry["name"]]
        # The list is written before the folders go, so that it never names one that is gone.
        self._list([one for one in [*others, entry] if (checkpoints_dir(self.run_dir) / one["name"]).exists()])
        self._write()
        self._list(prune_checkpoints(self.run_dir, self.manifest.checkpoints, self.retention))
        self._write()

    def _list_existing(self) -> None:
        """List what is there: a driver, or a worker, that was killed may have left more, or less, than was listed."""
        self._list([read_record(folder) for folder in all_checkpoints(self.run_dir)])

    def _list(self, checkpoints: list[dict[str, Any]]) -> None:
        list_checkpoints(self.manifest, checkpoints)


def list_checkpoints(manifest: Manifest, checkpoints: list[dict[str, Any]]) -> None:
    """Note which checkpoints a run has, and which one of them is the best."""
    manifest.checkpoints = checkpoints
    best = best_record(checkpoints)
    if best is not None:
        manifest.best_checkpoint = f"checkpoints/{best['name']}"
        score = {name: value for name, value in best["score"].items() if name != "newest"}
        # A model of several rounds may have been best before its last one.
        manifest.best = {"step": best["step"], "epoch": best["epoch"], **score}
