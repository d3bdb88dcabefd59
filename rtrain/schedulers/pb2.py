"""Population based bandits: as in population based training, but a Gaussian process chooses the next values.

Source: Parker-Holder et al., "Provably efficient online hyperparameter optimization with population-based bandits"
(NeurIPS 2020). The process models how much a trial improves in an interval, by its values and the time. What
was seen long ago counts less; values chosen for others a moment ago count as if they had brought what is expected.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rtrain.config.compose.search_space import Axis
from rtrain.errors import ConfigError
from rtrain.schedulers import pbt
from rtrain.schedulers.base import Exploit, GoOn, Pause
from rtrain.searches.base import Objective, Point

NUM_CANDIDATES = 1000
NUM_NEWEST = 200
"""Observations that are looked at."""
FAR = 1e5
"""A length scale that makes a kernel blind for a dimension."""


@dataclass(kw_only=True)
class Conf(pbt.Conf):
    """Population based bandits. ``resample`` applies to axes that are not intervals: the process ignores them."""


class Scheduler(pbt.Scheduler):
    """Population based bandits."""

    Conf = Conf
    requires = ("sklearn",)

    def __init__(self, conf: Any, goal: Objective, axes: Sequence[Axis] = (), longest: int | None = None) -> None:
        super().__init__(conf, goal, axes, longest)
        if axes and all(axis.values for axis in axes):
            raise ConfigError(
                "sweep/scheduler=pb2 chooses numbers from intervals, but no interval is varied.",
                "Write lr='tag(log,interval(1e-4,1))', or use sweep/scheduler=pbt",
            )
        self._began: dict[int, float] = {}
        """By trial, its badness when its interval began."""
        self._seen: list[tuple[list[float], float]] = []
        """Time (in intervals) and values (from 0 to 1), and what was gained with them in an interval."""
        self._chosen: list[tuple[list[float], float]] = []
        """The same of values that were chosen a moment ago: the gain is what is expected."""

    def hear(self, trial: int, length: int, value: float) -> Pause | None:
        """Note what a trial has gained in an interval that it has come to the end of."""
        decision = super().hear(trial, length, value)
        if decision is not None:
            now, before = self._badness(trial), self._began.get(trial, math.inf)
            if math.isfinite(now) and math.isfinite(before):
                self._seen.append((self._features(self._points[trial], length), before - now))
            self._began[trial] = now
        return decision

    def exploited(self, trial: int, decision: Exploit) -> None:
        """Give it the values and the place of the other one."""
        super().exploited(trial, decision)
        self._began[trial] = self._badness(trial)

    def _exploit(self, trial: int, source: int, rng: random.Random) -> Exploit:
        decision = super()._exploit(trial, source, rng)
        self._began[trial] = self._badness(trial)
        return decision

    def _next_generation(self) -> list[tuple[int, GoOn | Exploit]]:
        self._chosen.clear()
        return super()._next_generation()

    def _features(self, point: Point, length: int) -> list[float]:
        pairs = zip(self.axes, point, strict=True)
        return [length / self.conf.interval, *(unit(axis, text) for axis, text in pairs if not axis.values)]

    def _explore(self, point: Point, source: int, rng: random.Random) -> Point:
        """Return the values with the largest upper confidence bound of the gain; while little is known, as in PBT."""
        perturbed = super()._explore(point, source, rng)
        if len(self._seen) < 3:
            return perturbed
        length = self._last[source][0] + self.conf.interval
        chosen = self._best_candidate(length / self.conf.interval, rng)
        values = iter(chosen)
        return tuple(
            text if axis.values else from_unit(axis, next(values))
            for axis, text in zip(self.axes, perturbed, strict=True)
        )

    def _best_candidate(self, time: float, rng: random.Random) -> list[float]:
        import numpy as np
        from threadpoolctl import threadpool_limits

        known = [*self._seen[-NUM_NEWEST:], *self._chosen]
        num = len(known[0][0]) - 1
        candidates = np.array([[time, *(rng.random() for _ in range(num))] for _ in range(NUM_CANDIDATES)])
        with threadpool_limits(1), warnings.catch_warnings():  # threads take longer to meet than such matrices take
            warnings.simplefilter("ignore")  # that the length of a kernel is at its bound
            process = _process(num).fit([features for features, _ in known], [gain for _, gain in known])
        mean, deviation = process.predict(candidates, return_std=True)
        width = math.sqrt(max(0.2 + math.log(0.4 * max(time, 1.0)), 0.2))  # of the bound, as the paper's code has it
        best = int(np.argmax(mean + width * deviation))
        self._chosen.append((candidates[best].tolist(), float(mean[best])))
        return [float(one) for one in candidates[best][1:]]


def _process(num_values: int) -> Any:
    """Return a Gaussian process over (time, values): exp(-distance) in time, squared exponential in the values."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

    blind = (FAR / 2, FAR * 2)
    values = RBF([FAR, *[0.3] * num_values], [blind, *[(0.05, 5.0)] * num_values])
    time = Matern([5.0, *[FAR] * num_values], [(1.0, 100.0), *[blind] * num_values], nu=0.5)
    kernel = values * time + WhiteKernel(0.1, (1e-3, 1.0))
    return GaussianProcessRegressor(kernel, normalize_y=True)


def unit(axis: Axis, text: str) -> float:
    """Return where a number lies in its interval, from 0 to 1."""
    number, low, high = float(text), axis.low, axis.high
    if axis.log:
        number, low, high = math.log(number), math.log(low), math.log(high)
    return (number - low) / (high - low)


def from_unit(axis: Axis, place: float) -> str:
    """Return the number at a place of an interval."""
    if axis.log:
        low, high = math.log(axis.low), math.log(axis.high)
        number = math.exp(low + place * (high - low))
    else:
        number = axis.low + place * (axis.high - axis.low)
    return axis.text(min(max(number, axis.low), axis.high))
