"""The driver's pen: turns what workers send into the run directory."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rtrain.runs.checkpoints import checkpoints_dir, prune_checkpoints
from rtrain.runs.events import Event, EventLog
from rtrain.runs.manifest import Manifest, utc_now

MANIFEST_INTERVAL_SECONDS = 2.0


class Observer(Protocol):
    """Someone who watches a run live: the terminal, a notebook, a logger."""

    def stage(self, name: str) -> None:
        """Hear what the driver does now, e.g. ``reading digits``."""

    def notice(self, text: str) -> None:
        """Hear something that the user should know, in one line."""

    def started(self, run_dir: Path, manifest: Manifest) -> None:
        """Hear that the run directory exists."""

    def progress(self, record: Mapping[str, Any]) -> None:
        """Hear how far the run is: ``step``, ``epoch``, ``steps_per_epoch``, ``rows``."""

    def event(self, event: Event) -> None:
        """Hear a report of metrics."""

    def ended(self, run_dir: Path, manifest: Manifest) -> None:
        """Hear that the run is over, however it ended."""


class Recorder:
    """Keeps the files of one run up to date; safe to call from several threads."""

    def __init__(self, run_dir: Path, manifest: Manifest, observer: Observer, keep: int) -> None:
        self.run_dir, self.manifest, self.observer = run_dir, manifest, observer
        self.failures: list[dict[str, Any]] = []
        """What workers raised, in order: ``rank``, ``type``, ``message``, ``traceback``, ``time``."""
        self._keep = keep
        self._lock = threading.RLock()
        self._written = 0.0
        checkpoints_dir(run_dir).mkdir(parents=True, exist_ok=True)
        (run_dir / "logs").mkdir(exist_ok=True)
        self._events = EventLog(run_dir / "events.jsonl")
        self.write()

    def write(self) -> None:
        """Write the manifest now."""
        with self._lock:
            self.manifest.write(self.run_dir)
            self._written = time.monotonic()

    def close(self) -> None:
        """Write what is open for the last time."""
        with self._lock:
            self.write()
            self._events.close()

    def accept(self, record: Mapping[str, Any]) -> None:
        """Take one record of a worker; its ``kind`` names the method below that knows what to do with it."""
        with self._lock:
            getattr(self, f"_accept_{record['kind']}")(record)

    def _accept_metrics(self, record: Mapping[str, Any]) -> None:
        event = Event.at(record["time"], step=record["step"], epoch=record["epoch"], metrics=record["metrics"])
        self._events.append(event)
        self.manifest.step, self.manifest.epoch = record["step"], record["epoch"]
        self.manifest.metrics.update(record["metrics"])
        if time.monotonic() - self._written > MANIFEST_INTERVAL_SECONDS:
            self.write()
        self.observer.event(event)

    def _accept_progress(self, record: Mapping[str, Any]) -> None:
        self.observer.progress(record)

    def _accept_worker(self, record: Mapping[str, Any]) -> None:
        self.manifest.workers.setdefault(str(record["rank"]), {}).update(record["facts"])

    def _accept_model(self, record: Mapping[str, Any]) -> None:
        self.manifest.model.update(record["facts"])

    def _accept_failure(self, record: Mapping[str, Any]) -> None:
        self.failures.append({key: value for key, value in record.items() if key != "kind"})

    def _accept_attempt(self, record: Mapping[str, Any]) -> None:
        self.manifest.attempts.append({"started_at": utc_now(), **{k: v for k, v in record.items() if k != "kind"}})
        self.write()

    def end_attempt(self, why: Mapping[str, Any]) -> None:
        """Note why the newest attempt ended before its time: ``kind``, ``message``, ``rank``, ``type``."""
        with self._lock:
            if self.manifest.attempts:
                self.manifest.attempts[-1]["ended_at"] = utc_now()
                self.manifest.attempts[-1]["ended_because"] = dict(why)
                self.write()

    def _accept_checkpoint(self, record: Mapping[str, Any]) -> None:
        entry = {key: value for key, value in record.items() if key not in ("kind", "monitor")}
        others = [old for old in self.manifest.checkpoints if old["name"] != entry["name"]]
        if entry["best"]:
            others = [{**old, "best": False} for old in others]
            self._note_best(entry, record.get("monitor"))
        there = [one for one in [*others, entry] if (checkpoints_dir(self.run_dir) / one["name"]).exists()]
        # The list is written before the folders go, so that it never names one that is gone.
        self.manifest.checkpoints = there
        self.write()
        self.manifest.checkpoints = prune_checkpoints(self.run_dir, there, self._keep)
        self.write()

    def _note_best(self, entry: Mapping[str, Any], monitor: Mapping[str, Any] | None) -> None:
        self.manifest.best_checkpoint = f"checkpoints/{entry['name']}"
        name = (monitor or {}).get("name")
        self.manifest.best = {
            "monitor": name,
            "mode": (monitor or {}).get("mode"),
            "value": entry["metrics"].get(name),
            "step": entry["step"],
            "epoch": entry["epoch"],
        }

    def _accept_log(self, record: Mapping[str, Any]) -> None:
        with (self.run_dir / "logs" / f"worker-{int(record['rank'])}.log").open("a", encoding="utf-8") as file:
            file.write(record["text"])
