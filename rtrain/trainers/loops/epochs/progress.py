"""Where a training in epochs is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rtrain.datasets.base import ShardLayout
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.progress import Progress


@dataclass
class EpochProgress(Progress):
    """Where training is; the same on every rank."""

    step_in_epoch: int = 0
    """Steps done of the epoch that is under way."""
    rows_per_step: int = 0
    """Rows of all ranks per step when the current epoch began; 0 before the first one."""
    num_workers: int = 0
    """Ranks with their own rows when the current epoch began."""
    early_best: float | None = None
    best: list[float] = field(default_factory=list)
    """Values of the best evaluations so far, the best first; as many as best checkpoints are kept."""
    best_by: list[str | None] | None = None
    """The metric of these values, and its mode; None before the first of them and in old checkpoints."""
    loss_sum: float = 0.0
    """Sum of all row losses in the epoch under way by their weights, over all ranks; without steps left out."""
    loss_weight: float = 0.0
    """What counts behind it: the rows, or the sum of their weights."""
    rows: int = 0
    """Rows of the epoch under way that all ranks have taken, as of the last look at their losses."""
    skipped_in_a_row: int = 0
    """Steps left out since the last one that was taken."""
    window_loss_sum: float = 0.0
    """Such a sum since the last report of the training loss, in this epoch."""
    window_weight: float = 0.0
    """What counts behind it."""
    unjudged: list[str] = field(default_factory=list)
    """Metrics that got a value since an evaluation was last judged."""

    def __post_init__(self) -> None:
        """Count rows alike behind the losses of an older checkpoint, which did not note weights."""
        if self.loss_sum and not self.loss_weight:
            self.loss_weight, self.window_loss_sum = float(self.rows), 0.0

    def add(self, metrics: Mapping[str, float]) -> None:
        """Note new values."""
        self.metrics.update(metrics)
        self.unjudged = sorted({*self.unjudged, *metrics})

    def news(self) -> dict[str, float]:
        """Return the values that no evaluation was judged by so far."""
        return {name: self.metrics[name] for name in self.unjudged if name in self.metrics}

    def began(self, layout: ShardLayout) -> ShardLayout:
        """Return how ranks share the rows of the epoch under way: as when it began, or if it begins, as they do now."""
        if self.step_in_epoch == 0 or self.num_workers == 0:
            self.num_workers, self.rows_per_step = layout.num_workers, layout.rows_per_step
        return ShardLayout(num_workers=self.num_workers, rows_per_step=self.rows_per_step)

    def judge(self, early: EarlyStoppingConf, monitor: Monitor, metrics: Mapping[str, float]) -> None:
        """Count how many evaluations in a row have brought no improvement; from 0 when another metric is watched.

        Args:
            early: What counts as an improvement.
            monitor: The metric that is watched.
            metrics: The newest value of each metric.
        """
        if self.judged_by not in (None, monitor.identity):
            self.early_best, self.bad_evaluations = None, 0
        self.judged_by = monitor.identity
        value, sign = metrics.get(str(monitor.name), math.nan), 1 if monitor.mode == "min" else -1
        best = None if self.early_best is None else sign * self.early_best
        if monitor.improves(value, best, early.min_delta):
            self.early_best, self.bad_evaluations = sign * value, 0
        else:
            self.bad_evaluations += 1

    def is_best(self, monitor: Monitor, keep: int) -> bool:
        """Note the newest value of ``monitor``, and return whether no ``keep`` earlier evaluations were as good.

        Args:
            monitor: What chooses the best checkpoints; values of another metric are forgotten.
            keep: Number of best checkpoints that stay.
        """
        score = monitor.score(self.metrics)
        if score is None:
            return False
        value = score["value"]
        known = self.best[:keep] if self.best_by == monitor.identity else []
        is_best = len(known) < keep or monitor.improves(value, known[-1])
        if is_best:
            known = sorted([*known, value], reverse=monitor.mode == "max")[:keep]
        self.best, self.best_by = known, monitor.identity
        return is_best
