"""What a train loop has reported so far: steps and epochs, limits and goals, and the records of its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rtrain.runs.checkpoints import read_record
from rtrain.trainers.loops.collectives import SingleProcess
from rtrain.trainers.loops.control import LoopControl
from rtrain.trainers.loops.custom.reports.metrics import split_metrics, whole_number
from rtrain.trainers.loops.custom.reports.records import fields_of, metrics_as_reported, metrics_of
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.progress import Progress
from rtrain.trainers.worker import Worker


@dataclass(frozen=True)
class _Limits:
    """The limits of a trainer that count for a loop: those of declared models may have values in any config."""

    max_seconds: float | None
    max_steps: int | None
    early_stopping: None = None

    @classmethod
    def of(cls, conf: Any) -> Self:
        """Return them; rounds are what declared trees have in place of steps."""
        return cls(conf.max_seconds, getattr(conf, "max_steps", None))


class ReportLog:
    """What was reported so far, as this worker counts it."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        newest = worker.resume_dir()
        record = {} if newest is None else read_record(newest)
        # What the loop calls an epoch limits nothing.
        step, seconds = int(record.get("step", -1)), float(record.get("seconds", 0.0))
        self.progress = Progress(step=step, seconds=seconds, metrics=dict(record.get("metrics", {})))
        self.number = int(record.get("report", max(self.progress.step, 0)))
        self._late: dict[str, float] = {}
        """Metrics of validations since the last report, which limits look at too."""
        self._monitor = Monitor.of(worker.run.checkpoint.best, None, worker.directions)
        # Rank 0 decides for all.
        self._control = LoopControl(worker, _Limits.of(worker.conf), SingleProcess(), self.progress)

    def record(self, numbers: dict[str, float], values: dict[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Send one report, and return the fields of its checkpoint's record other than the files.

        Args:
            numbers: The numbers among the metrics, by their flat names.
            values: All else.
            metrics: As they were reported.
        """
        step = self._next_step(whole_number(numbers.get("step")))
        epoch = whole_number(numbers.get("epoch"))
        epoch = self.number if epoch is None else epoch
        self.progress.step, self.progress.metrics = step, {**self._late, **numbers}
        self._late = {}
        self.worker.report(numbers, step=step, epoch=epoch, values=values)
        facts = fields_of(numbers, values, metrics_as_reported(metrics, self.worker.redact))
        facts |= {"step": step, "epoch": epoch, "score": self._monitor.score(numbers)}
        return {**facts, "report": self.number, "seconds": self._control.signal.seconds}

    def add(self, record: Mapping[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Send metrics of a checkpoint that came later, and return the fields of its record that they change."""
        numbers, values = split_metrics(metrics, self.worker.redact)
        self.worker.report(numbers, step=record["step"], epoch=record["epoch"], values=values)
        self._late |= numbers
        every = {**record["metrics"], **numbers}
        own = {**metrics_of(record), **metrics_as_reported(metrics, self.worker.redact)}
        facts = fields_of(every, {**record.get("values", {}), **values}, own)
        return {**facts, "score": self._monitor.score(every)}

    def _next_step(self, reported: int | None) -> int:
        """Return the step of a report: its own ``step`` where that goes up, else one more than before."""
        before = self.progress.step
        return reported if reported is not None and reported > before else max(before, 0) + 1

    def over_before(self) -> str:
        """Return the limit at which a run that is resumed had ended, and tell the user; an empty string if at none."""
        reason = "" if self.worker.resume_dir() is None else self._control.over_before()
        if reason:
            self.worker.describe_end(reason)
        return reason

    def reason(self) -> str:
        """Return why training should end at the newest report, or an empty string."""
        return self._control.reason()
