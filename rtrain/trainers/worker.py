"""What a train loop may call: the same services for every plugin, in a Ray worker and inside the driver alike."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rtrain.config.run_conf import RunConf
from rtrain.config.secrets.redact import Redactor
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset
from rtrain.errors import TrainingError
from rtrain.runs.checkpoints import Writer
from rtrain.runs.events import Event, event_line
from rtrain.runs.records import (
    EndRecord,
    ModelRecord,
    NoticeRecord,
    ProgressRecord,
    RunRecord,
    WorkerRecord,
)
from rtrain.trainers.checkpoint_writer import CheckpointWriter
from rtrain.trainers.liveness import Life
from rtrain.trainers.loops.directions import Directions
from rtrain.trainers.loops.monitor import Monitor


class Channel(Protocol):
    """The way from a worker to the driver that keeps the run directory."""

    def send(self, record: RunRecord) -> None:
        """Hand over a record without waiting; it is delivered in order and in batches."""

    @property
    def stop_reason(self) -> str | None:
        """Why the driver wants the run to end, e.g. ``interrupted``; None to continue."""

    @property
    def save_requested(self) -> str | None:
        """Names the newest request for a checkpoint that is due now, a notice that the machine will go, say."""


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
    checkpoints: CheckpointWriter
    use_gpu: bool = False
    """The worker has a GPU."""
    resume_from: Path | None = None
    """The checkpoint to resume from; the same on every rank."""
    resumes_own: bool = True
    """This account wrote the files of that checkpoint, or the user trusts who did."""
    in_process: bool = False
    """The worker is the driver's own process: there is no cluster."""
    stays: bool = False
    """The process trains other runs after this one, with the same workers."""
    builder: Builder = field(default_factory=Builder)
    """Builds what the config names."""
    redact: Redactor = field(default_factory=Redactor)
    """Takes the secrets of the config out of texts."""
    started: float = field(default_factory=time.monotonic)
    life: Life = field(default_factory=Life)
    """What the watchdog watches."""
    known_directions: Directions = field(default_factory=Directions)
    """Which way the metrics of the trainer get better."""

    schedule: str | None = None
    """Key of what is as long as the whole run, which can't be extended then."""

    @property
    def data(self) -> Dataset:
        """The dataset, for loops that are only called where the checks of the plugin have seen one."""
        assert self.dataset is not None, "checked by the plugin"
        return self.dataset

    @property
    def directions(self) -> Directions:
        """Which way metrics get better, by the trainer and by the config."""
        return self.known_directions.configured(self.run.checkpoint.best, self.conf)

    def report(
        self, metrics: Mapping[str, float], *, step: int, epoch: int, values: Mapping[str, Any] | None = None
    ) -> None:
        """Record metrics in ``events.jsonl`` and on the display. Rank 0 speaks for all; other ranks may call it too.

        Args:
            metrics: Plain floats by name, ``train/loss`` or ``val/accuracy`` say.
            step: Optimizer steps done.
            epoch: Epochs done, counted from 0 while the first one runs.
            values: What is not a number, as JSON can hold it.

        Raises:
            TrainingError: It is longer than a line of ``events.jsonl`` may be, or step or epoch is not a whole number.
        """
        if self.rank == 0:
            numbers = {self.redact(name): float(value) for name, value in metrics.items()}
            steps = {"step": _whole("step", step), "epoch": _whole("epoch", epoch)}
            event = Event.at(time.time(), **steps, metrics=numbers, values=values)
            line = event_line(event)  # one that is too long fails here, where it is reported
            self.channel.send(event)
            self.checkpoints.unsaved.add(line)

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
            self.channel.send(ProgressRecord(step=step, epoch=epoch, steps_per_epoch=steps_per_epoch, rows=rows))

    def alive(self, step: int | None = None) -> None:
        """Tell that this rank gets on (``run.failure.hang_seconds``); between steps, as in evaluations, without one."""
        self.life.sign(step)

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Add plain facts about this worker (device, rows per split, threads) to the manifest."""
        self.channel.send(WorkerRecord(rank=self.rank, facts=dict(facts)))

    def describe_model(self, facts: Mapping[str, Any]) -> None:
        """Add plain facts about the trained model (feature importance, number of trees) to the manifest; on rank 0."""
        if self.rank == 0:
            self.channel.send(ModelRecord(facts=dict(facts)))

    def save_checkpoint(
        self,
        snapshot: Callable[[], Writer],
        *,
        step: int,
        epoch: int,
        metrics: Mapping[str, float],
        score: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a checkpoint, complete or not at all, and have the driver list it and drop old ones.

        Rank 0 writes it, or all ranks do if there is a ``checkpoints.group``; they all call this at the same step. With
        ``run.checkpoint.upload: async`` files are written while training continues, one checkpoint at a time.

        Args:
            snapshot: Copies what training changes, and returns what writes the copy into an empty folder; that is
                called once, maybe in another thread, before the next ``snapshot``.
            step: Optimizer steps done.
            epoch: Epochs done.
            metrics: The latest metrics, stored next to the checkpoint.
            score: How good it is, as ``score`` returns it, if it was evaluated: the best one stays.

        Raises:
            CheckpointError: This one, or the one before, can't be written.
        """
        step, epoch = _whole("step", step), _whole("epoch", epoch)
        self.checkpoints.save(snapshot, step=step, epoch=epoch, metrics=metrics, score=score)

    def score(self, metrics: Mapping[str, float], default: str | None = None) -> dict[str, Any] | None:
        """Return how good metrics are by the one that decides the best checkpoint; None if it is not among them.

        Args:
            metrics: Of the model as it is now.
            default: The metric that decides where neither ``run.checkpoint.best`` nor early stopping names one.

        Raises:
            ConfigError: A mode contradicts what is known of the metric that it is for.
        """
        return Monitor.of(self.run.checkpoint.best, self.conf, self.directions, default).score(metrics)

    def resume_dir(self) -> Path | None:
        """Return the checkpoint that this run resumes from, or None when it is new."""
        return self.resume_from

    def init_dir(self) -> Path | None:
        """Return the checkpoint whose weights a new run begins with; None for none, and when the run is resumed."""
        wanted = self.run.init_from
        return None if wanted is None or self.resume_from is not None else Path(wanted)

    def notice(self, text: str) -> None:
        """Show the user a line; on rank 0."""
        if self.rank == 0:
            self.channel.send(NoticeRecord(text=text))

    def describe_end(self, reason: str) -> None:
        """Tell why training ends, in a few words: a limit that was reached, say; on rank 0."""
        if self.rank == 0:
            self.channel.send(EndRecord(reason=reason))

    @property
    def stop_reason(self) -> str | None:
        """Why the run should end soon, as this worker knows it; the loop lets all ranks agree before it acts on it."""
        return self.channel.stop_reason

    def elapsed_seconds(self) -> float:
        """Return the seconds since this worker started."""
        return time.monotonic() - self.started


def _whole(name: str, number: Any) -> int:
    """Return a number as an int: a framework may have it as a NumPy integer."""
    try:
        return operator.index(number)
    except TypeError as error:
        raise TrainingError(f"{name} must be a whole number, not {number!r}.") from error
