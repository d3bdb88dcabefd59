"""Whether a metric is good: what it scores a checkpoint, and when it ends a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtrain.config.run_conf import BestConf, RunConf, StopConf
from rtrain.trainers.loops.directions import Directions, check_modes, monitored
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

_TYPED = re.compile(r"[\w./@-]+")
"""Names that a mapping on a command line can have."""


@dataclass(frozen=True)
class Monitor:
    """The metric that tells the best checkpoint."""

    name: str | None
    mode: str | None
    """``min`` or ``max``; None if it isn't known: then nothing is the best."""

    @classmethod
    def of(cls, best: BestConf, trainer: Any, directions: Directions, default: str | None = None) -> Monitor:
        """Take the metric from ``run.checkpoint.best``, else from early stopping, else ``default``.

        Args:
            best: May name the metric, and its mode.
            trainer: The trainer's conf, which may stop early by a metric.
            directions: Of the run.
            default: The trainer's own choice.

        Raises:
            ConfigError: A mode contradicts what is known of the metric that it is for.
        """
        check_modes(best, trainer, directions, default)
        name = monitored(best, trainer) or default
        return cls(name, directions.of(name) if best.mode == "auto" else best.mode)

    def stopping(self, early: EarlyStoppingConf, directions: Directions) -> Monitor:
        """Return the metric that decides early stopping: its own, or this one.

        Raises:
            ConfigError: Its direction isn't known.
        """
        name = early.monitor or str(self.name)
        if early.mode != "auto":
            return Monitor(name, early.mode)
        mode = self.mode if name == self.name else None
        return Monitor(name, mode or directions.needed(name, "trainer.early_stopping.mode"))

    @property
    def identity(self) -> list[str | None]:
        """The metric and its mode, as checkpoints record by what values were judged."""
        return [self.name, self.mode]

    def score(self, metrics: Mapping[str, float]) -> dict[str, Any] | None:
        """Return how good ``metrics`` are, for the record of a checkpoint; None if it is absent or not finite."""
        value = metrics.get(self.name) if self.name is not None and self.mode is not None else None
        if value is None or not math.isfinite(value):
            return None
        return {"monitor": self.name, "mode": self.mode, "value": float(value)}  # LightGBM has NumPy's numbers

    def improves(self, value: float, best: float | None, min_delta: float = 0.0) -> bool:
        """Return whether ``value`` is better than the best one so far, by more than ``min_delta``; NaN never is."""
        if math.isnan(value) or self.mode is None:
            return False
        return best is None or (value < best - min_delta if self.mode == "min" else value > best + min_delta)


class StopConditions:
    """The metrics that end a run: ``run.stop.target`` and ``run.stop.bounds``."""

    def __init__(self, conf: StopConf, directions: Directions) -> None:
        self._conf, self._directions = conf, directions

    def reached(self, metrics: Mapping[str, float]) -> str:
        """Return why the newest metrics end the run, or an empty string; the same on every rank that has the same."""
        for name, target in self._targets_reached(metrics):
            return f"{name} reached its target of {target:g}"
        for name, value in self._out_of_bounds(metrics):
            return f"{name} left its bounds with {value:g}"
        return ""

    def longer(self, metrics: Mapping[str, float]) -> list[str]:
        """Return the overrides with which a run does not end for these metrics; of NaN, none has a bound that holds."""
        targets = [f"{name}: null" for name, _ in self._targets_reached(metrics) if _TYPED.fullmatch(name)]
        bounds = []
        for name, value in self._out_of_bounds(metrics):
            least = self._conf.bounds[name].min
            side = "min" if least is not None and value < least else "max"
            if _TYPED.fullmatch(name) and not math.isnan(value):
                bounds.append(f"{name}: {{{side}: {value!r}}}")
        found = {"run.stop.target": targets, "run.stop.bounds": bounds}
        return [f"{key}={{{', '.join(parts)}}}" for key, parts in found.items() if parts]

    def _targets_reached(self, metrics: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        for name, target in self._conf.targets.items():
            value = metrics.get(name)
            monitor = Monitor(name, self._directions.of(name))
            if value is not None and (value == target or monitor.improves(value, target)):
                yield name, target

    def _out_of_bounds(self, metrics: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        for name, bounds in self._conf.bounds.items():
            value = metrics.get(name)
            if value is not None and not bounds.hold(value):
                yield name, float(value)


def goal_names(conf: StopConf) -> dict[str, str]:
    """Return the metrics that can end a run, with the key that names each."""
    return dict.fromkeys(conf.bounds, "run.stop.bounds") | dict.fromkeys(conf.targets, "run.stop.target")


def metrics_named(run: RunConf, trainer: Any) -> list[tuple[str, str]]:
    """Return each key of a config that names a metric to judge by, with the metric.

    Args:
        run: The section ``run``.
        trainer: The trainer's conf, which may stop early.
    """
    early = getattr(trainer, "early_stopping", None)
    watched = {
        "run.checkpoint.best.monitor": run.checkpoint.best.monitor,
        "trainer.early_stopping.monitor": None if early is None else early.monitor,
    }
    goals = [(key, name) for name, key in goal_names(run.stop).items()]
    return [*((key, name) for key, name in watched.items() if name is not None), *goals]
