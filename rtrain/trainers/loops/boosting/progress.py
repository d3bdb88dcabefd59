"""Where a training of boosted trees is, and how that goes into a checkpoint and back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rtrain.runs.checkpoints import read_state
from rtrain.trainers.loops.boosting.conf import BoostingConf
from rtrain.trainers.loops.monitor import Monitor

PROGRESS = "progress.json"


@dataclass
class Progress:
    """Where training is; the same on every worker."""

    rounds: int = 0
    """Rounds done."""
    rounds_before: int = 0
    """Rounds of the model that training began with."""
    best: float | None = None
    """Best value of the monitored metric."""
    best_round: int = 0
    """Rounds that gave it; 0 while there is none."""
    was_finite: bool = False
    """The monitored metric had a value that is neither NaN nor infinite."""
    judged_by: list[str | None] | None = None
    """The monitored metric and its mode; None in older checkpoints."""
    seconds: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    """The newest value of each metric."""
    best_metrics: dict[str, float] = field(default_factory=dict)
    """The metrics of the best round."""

    @classmethod
    def load(cls, folder: Path) -> Progress:
        """Read what ``save`` wrote."""
        return cls(**read_state(folder, PROGRESS))

    def save(self, folder: Path) -> None:
        """Write ``progress.json``."""
        (folder / PROGRESS).write_text(json.dumps(asdict(self)), encoding="utf-8")

    def judge_by(self, monitor: Monitor) -> None:
        """Forget the best round if it is the best one by another metric, as a resume may name one."""
        if self.judged_by not in (None, monitor.identity):
            self.best, self.best_round, self.best_metrics, self.was_finite = None, 0, {}, False
        self.judged_by = monitor.identity

    def judge(self, value: float, monitor: Monitor, min_delta: float) -> None:
        """Note the newest round as the best one if its value of the monitored metric is better by ``min_delta``."""
        if not math.isfinite(value):
            return
        self.was_finite = True
        if monitor.improves(value, self.best, min_delta):
            self.best, self.best_round, self.best_metrics = value, self.rounds, self.metrics

    def rounds_to_predict(self, conf: BoostingConf) -> int:
        """Return the rounds that a prediction should use: up to the best one with early stopping; 0 for all of them."""
        stops = conf.early_stopping_rounds is not None and self.best_round > 0
        return self.rounds_before + self.best_round if stops else 0
