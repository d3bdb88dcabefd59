"""Whether a metric is good: which direction it goes, what it scores a checkpoint, and when it ends a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtrain.config.schema import BestConf, StopConf

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


@dataclass(frozen=True)
class Monitor:
    """The metric that tells the best checkpoint."""

    name: str | None
    mode: str
    """``min`` or ``max``."""

    @classmethod
    def of(cls, conf: BestConf, default: str | None = None) -> Monitor:
        """Take the metric from the config, else ``default``; ``auto`` mode goes by the metric's name."""
        name = conf.monitor or default
        return cls.by_name(name) if conf.mode == "auto" else cls(name, conf.mode)

    @classmethod
    def by_name(cls, name: str | None) -> Monitor:
        """Take a metric, with the mode that its name tells: losses and errors go down, everything else up."""
        last = (name or "").lower().rpartition("/")[2]
        smaller = last in SMALLER_NAMES or any(word in last for word in SMALLER_IS_BETTER)
        return cls(name, "min" if smaller else "max")

    def score(self, metrics: Mapping[str, float]) -> dict[str, Any] | None:
        """Return how good ``metrics`` are, for the record of a checkpoint; None when the metric is absent or NaN."""
        value = metrics.get(self.name) if self.name is not None else None
        if value is None or math.isnan(value):
            return None
        return {"monitor": self.name, "mode": self.mode, "value": value}

    def improves(self, value: float, best: float | None) -> bool:
        """Tell whether ``value`` is better than the best one so far; NaN never is."""
        if math.isnan(value):
            return False
        return best is None or (value < best if self.mode == "min" else value > best)


class Goals:
    """The metrics that end a run: ``run.stop.target`` and ``run.stop.bounds``."""

    def __init__(self, conf: StopConf) -> None:
        self._conf = conf

    @property
    def names(self) -> dict[str, str]:
        """The metrics that are looked at, with the key that names each."""
        keys = dict.fromkeys(self._conf.bounds, "run.stop.bounds")
        return keys | dict.fromkeys(self._conf.target, "run.stop.target")

    def reached(self, metrics: Mapping[str, float]) -> str:
        """Return why the newest metrics end the run, or an empty string; the same on every rank that has the same."""
        for name, target in self._conf.target.items():
            value = metrics.get(name)
            if value is not None and (value == target or Monitor.by_name(name).improves(value, target)):
                return f"{name} reached its target of {target:g}"
        for name, bounds in self._conf.bounds.items():
            value = metrics.get(name)
            if value is not None and not bounds.hold(value):
                return f"{name} left its bounds with {value:g}"
        return ""
