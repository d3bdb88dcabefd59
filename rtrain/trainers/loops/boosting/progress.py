"""Where a training of boosted trees is, and how that goes into a checkpoint and back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rtrain.runs.checkpoints import read_state
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.progress import FILE_NAME, Progress


@dataclass
class RoundProgress(Progress):
    """Where training is; a round counts as a step, as an epoch and as an evaluation."""

    evaluations = "rounds"
    rounds_before: int = 0
    """Rounds of the model that training began with."""
    best: float | None = None
    """Best value of the monitored metric."""
    best_round: int = 0
    """Rounds that gave it; 0 while there is none."""
    was_finite: bool = False
    """The monitored metric had a value that is neither NaN nor infinite."""
    best_metrics: dict[str, float] = field(default_factory=dict)
    """The metrics of the best round."""

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what ``save`` wrote into a checkpoint; older ones know of rounds alone."""
        progress = super().load(folder)
        progress.move_to(read_state(folder, FILE_NAME).get("rounds", progress.step))
        return progress

    def move_to(self, step: int) -> None:
        """Count rounds."""
        self.step = self.epoch = self.evaluated_step = step
        self.bad_evaluations = step - self.best_round if self.best_round else 0

    def judge_by(self, monitor: Monitor) -> None:
        """Forget the best round if it is the best one by another metric, as a resume may name one."""
        if self.judged_by not in (None, monitor.identity):
            self.best, self.best_round, self.best_metrics, self.was_finite = None, 0, {}, False
            self.bad_evaluations = 0
        self.judged_by = monitor.identity

    def judge(self, value: float, monitor: Monitor, min_delta: float) -> None:
        """Note the newest round as the best one if its value of the monitored metric is better by ``min_delta``."""
        if not math.isfinite(value):
            return
        self.was_finite = True
        if monitor.improves(value, self.best, min_delta):
            self.best, self.best_round, self.best_metrics = value, self.step, self.metrics
            self.bad_evaluations = 0

    def rounds_to_predict(self, *, stops_early: bool) -> int:
        """Return the rounds that a prediction should use: up to the best one with early stopping; 0 for all of them."""
        return self.rounds_before + self.best_round if stops_early and self.best_round > 0 else 0
