"""What a train loop may call: the same services for every plugin, in a Ray worker and inside the driver alike."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rtrain.config.schema import CheckpointConf, RunConf
from rtrain.datasets.base import Dataset
from rtrain.runs.checkpoints import (
    RECORD_NAME,
    checkpoint_dir,
    complete_checkpoint,
    latest_checkpoint,
    read_record,
    write_checkpoint,
    writing,
)
from rtrain.trainers.trained import About
from rtrain.trainers.watchdog import Life

SMALLER_IS_BETTER = (
    "loss",
    "error",
    "mse",
    "mae",
    "rmse",
    "perplexity",
    "nloglik",
    "deviance",
    "mape",
    "mphe",
    "quantile",
)
"""Words in the names of metrics that go down."""
SMALLER_NAMES = ("l1", "l2", "huber", "fair", "poisson", "gamma", "tweedie", "cross_entropy", "kullback_leibler")
"""Whole names of such metrics."""


class Channel(Protocol):
    """The way from a worker to the driver that keeps the run directory."""

    def send(self, record: Mapping[str, Any]) -> None:
        """Hand over a record without waiting; it is delivered in order and in batches."""

    @property
    def stop_reason(self) -> str | None:
        """Why the driver wants the run to end, e.g. ``interrupted``; None to go on."""


class ShardWriter(Protocol):
    """What each rank knows of a checkpoint that all of them write together."""

    def write(self, folder: Path) -> None:
        """Write this rank's part into ``folder``, which all ranks share."""

    def wait(self) -> None:
        """Return when every rank has called it."""


@dataclass
class Monitor:
    """The metric that tells the best checkpoint, and its best value so far."""

    name: str | None
    mode: str
    """``min`` or ``max``."""
    best: float | None = None

    @classmethod
    def of(cls, conf: CheckpointConf, default: str | None = None) -> Monitor:
        """Take the metric from the config, else ``default``; ``auto`` mode goes by the metric's name."""
        name = conf.monitor or default
        return cls.by_name(name) if conf.mode == "auto" else cls(name, conf.mode)

    @classmethod
    def by_name(cls, name: str | None) -> Monitor:
        """Take a metric, with the mode that its name tells: losses and errors go down, everything else up."""
        last = (name or "").lower().rpartition("/")[2]
        smaller = last in SMALLER_NAMES or any(word in last for word in SMALLER_IS_BETTER)
        return cls(name, "min" if smaller else "max")

    def improves(self, metrics: Mapping[str, float]) -> bool:
        """Take new metrics and tell whether they are the best so far; False when the metric is absent or NaN."""
        value = metrics.get(self.name) if self.name is not None else None
        if value is None or value != value:
            return False
        better = self.best is None or (value < self.best if self.mode == "min" else value > self.best)
        if better:
            self.best = value
        return better


@dataclass
class Worker:
    """One of the processes that train."""

    rank: int
    world_size: int
    local_rank: int
    num_threads: int
    """Cores this worker really has."""
    run_dir: Path
    conf: Any
    """The plugin's conf."""
    run: RunConf
    dataset: Dataset | None
    channel: Channel
    about: About
    """What each checkpoint says of itself."""
    use_gpu: bool = False
    """The worker has a GPU."""
    in_process: bool = False
    """The worker is the driver's own process: there is no cluster."""
    allow: tuple[str, ...] = ()
    """Modules beyond rtrain's known frameworks that a ``_target_`` may come from."""
    started: float = field(default_factory=time.monotonic)
    life: Life = field(default_factory=Life)
    """What the watchdog watches."""

    def report(self, metrics: Mapping[str, float], *, step: int, epoch: int) -> None:
        """Record metrics in ``events.jsonl`` and on the display. Rank 0 speaks for all; other ranks may call it too.

        Args:
            metrics: Plain floats by name, ``train/loss`` or ``val/accuracy`` say.
            step: Optimizer steps done.
            epoch: Epochs done, counted from 0 while the first one runs.
        """
        if self.rank == 0:
            values = {name: float(value) for name, value in metrics.items()}
            self.channel.send({"kind": "metrics", "step": step, "epoch": epoch, "time": time.time(), "metrics": values})

    def progress(self, *, step: int, epoch: int, steps_per_epoch: int | None, rows: int) -> None:
        """Tell the display how far the run is, and the watchdog that it gets on; every rank calls it.

        It is cheap enough for each step, and never written to a file.

        Args:
            step: Optimizer steps done.
            epoch: Epochs done.
            steps_per_epoch: Steps of one epoch; None while unknown.
            rows: Rows of all workers that the step took.
        """
        self.life.sign(step)
        if self.rank == 0:
            done = {"step": step, "epoch": epoch, "steps_per_epoch": steps_per_epoch, "rows": rows}
            self.channel.send({"kind": "progress", **done})

    def alive(self, step: int | None = None) -> None:
        """Tell that this rank gets on (``run.failure.hang_seconds``); between steps, as in evaluations, without one."""
        self.life.sign(step)

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Add plain facts about this worker (device, rows per split, threads) to the manifest."""
        self.channel.send({"kind": "worker", "rank": self.rank, "facts": dict(facts)})

    def describe_model(self, facts: Mapping[str, Any]) -> None:
        """Add plain facts about the trained model (feature importance, number of trees) to the manifest; on rank 0."""
        if self.rank == 0:
            self.channel.send({"kind": "model", "facts": dict(facts)})

    def save_checkpoint(
        self,
        write: Callable[[Path], None],
        *,
        step: int,
        epoch: int,
        metrics: Mapping[str, float],
        best: bool = False,
        monitor: Monitor | None = None,
    ) -> None:
        """Write a checkpoint on rank 0, complete or not at all, and have the driver list it and drop old ones.

        Args:
            write: Fills the empty folder that it is given.
            step: Optimizer steps done.
            epoch: Epochs done.
            metrics: The newest metrics, kept beside the checkpoint.
            best: It is the best one so far by ``monitor``.
            monitor: The metric that decides.
        """
        if self.rank == 0:

            def write_all(folder: Path) -> None:
                write(folder)
                self.about.write(folder)

            record = write_checkpoint(self.run_dir, write_all, step=step, epoch=epoch, metrics=metrics)
            self.list_checkpoint(record, best=best, monitor=monitor)

    def save_sharded_checkpoint(
        self,
        shards: ShardWriter,
        *,
        step: int,
        epoch: int,
        metrics: Mapping[str, float],
        best: bool = False,
        monitor: Monitor | None = None,
    ) -> None:
        """Write a checkpoint that every rank has a part of, complete or not at all; every rank calls it.

        Args:
            shards: Writes this rank's part, and lets the ranks wait for each other.
            step: Optimizer steps done.
            epoch: Epochs done.
            metrics: The newest metrics, kept beside the checkpoint.
            best: It is the best one so far by ``monitor``.
            monitor: The metric that decides.
        """
        target = checkpoint_dir(self.run_dir, step=step, epoch=epoch)
        # All ranks look before any of them can have completed the folder.
        there = (target / RECORD_NAME).exists()
        shards.wait()
        if there:
            return
        temporary = target.with_name(f".{target.name}.tmp")
        if self.rank == 0:
            self._complete_shards(shards, temporary, target, {"step": step, "epoch": epoch, "metrics": metrics})
            self.list_checkpoint(read_record(target), best=best, monitor=monitor)
        else:
            shards.wait()
            shards.write(temporary)
            shards.wait()
        shards.wait()

    def _complete_shards(self, shards: ShardWriter, temporary: Path, target: Path, facts: Mapping[str, Any]) -> None:
        """Make the folder, let every rank fill it, and give it its name."""
        with writing(target, temporary):
            # What a killed attempt left behind must not get into this checkpoint.
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            shards.wait()
            shards.write(temporary)
            shards.wait()
            self.about.write(temporary)
            complete_checkpoint(temporary, target, **facts)

    def list_checkpoint(self, record: Mapping[str, Any], *, best: bool, monitor: Monitor | None) -> None:
        """Tell the driver of a checkpoint that is complete and in its place."""
        by = None if monitor is None else {"name": monitor.name, "mode": monitor.mode}
        self.channel.send({"kind": "checkpoint", **record, "best": best, "monitor": by})

    def resume_dir(self) -> Path | None:
        """Return the newest complete checkpoint of this run, or None when the run is new."""
        return latest_checkpoint(self.run_dir)

    @property
    def stop_reason(self) -> str | None:
        """Why the run should end soon, as this worker knows it; the loop lets all ranks agree before it acts on it."""
        return self.channel.stop_reason

    def elapsed_seconds(self) -> float:
        """Return the seconds since this worker started."""
        return time.monotonic() - self.started
