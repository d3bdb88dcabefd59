"""A run directory without a training, and what to look at in its copy."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Any

from rtrain.runs.checkpoints import Retention, checkpoint_dir, write_checkpoint
from rtrain.runs.events import Event
from rtrain.runs.observer import SilentObserver
from rtrain.runs.recorder import Recorder
from rtrain.runs.records import CheckpointRecord
from rtrain.storage.folders import Folder, read_json
from rtrain.testing.workers import make_manifest

CONFIG = "trainer: {type: none}\n"


class SmallRun:
    """A run directory whose checkpoints are a few random bytes, kept by the pen that keeps real ones."""

    def __init__(self, path: Path, keep: int = 2, keep_best: int = 1) -> None:
        self.path, self.retention = path, Retention(keep, keep_best)
        path.mkdir(parents=True)
        self.take_up()

    def take_up(self) -> None:
        """Begin a record, or go on with what is there."""
        path = self.path
        manifest = make_manifest(run_id=path.name, run_name=path.parent.name)
        self.recorder = Recorder(path, manifest, SilentObserver(), self.retention, CONFIG)

    def save(self, step: int, value: float = 0.0, size: int = 1000) -> str:
        """Write and list a checkpoint; return its name."""

        def fill(folder: Path) -> None:
            (folder / "model.bin").write_bytes(os.urandom(size))
            (folder / "parts").mkdir()
            (folder / "parts" / "0.bin").write_bytes(os.urandom(10))

        score = {"monitor": "val/loss", "mode": "min", "value": value}
        target = checkpoint_dir(self.path, step=step, epoch=0)
        record = write_checkpoint(target, fill, {"step": step, "epoch": 0, "metrics": {}, "score": score})
        self.recorder.accept(CheckpointRecord(entry=record))
        return target.name

    def report(self, step: int) -> None:
        """Write a line of events."""
        metrics = {"train/loss": 1 / (1 + step)}
        self.recorder.accept(Event.at(time.time(), step=step, epoch=0, metrics=metrics))

    def report_until_parts(self, folder: Folder, number: int) -> int:
        """Write lines of events until the store has them in a number of parts; return the steps that were written."""
        steps = itertools.count()

        def parts_there() -> bool:
            for _ in range(30):
                self.report(next(steps))
            return len([name for name in folder.sizes() if name.startswith("events.jsonl.")]) >= number

        until(parts_there)
        return next(steps)

    def end(self) -> None:
        """End as a run does."""
        self.recorder.manifest.status = "succeeded"
        (self.path / "logs" / "driver.log").write_text("a line\n")
        self.recorder.close()

    def checkpoints(self) -> list[str]:
        """The names of those that the manifest lists."""
        return [record["name"] for record in self.recorder.manifest.checkpoints]


def until(condition: Any, seconds: float = 60) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def stored_manifest(folder: Folder) -> dict[str, Any]:
    """What the store holds of the manifest; nothing before it is there."""
    try:
        return read_json(folder, "manifest.json")
    except FileNotFoundError:
        return {"checkpoints": []}


def stored_names(folder: Folder) -> list[str]:
    """The checkpoints that the manifest in the store lists."""
    return [record["name"] for record in stored_manifest(folder)["checkpoints"]]
