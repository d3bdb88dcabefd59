"""Points proposed by hyperopt's TPE: a model of which values good trials have and bad ones have not.

Source: Bergstra et al., "Algorithms for hyper-parameter optimization" (NeurIPS 2011); Bergstra et al., "Making a
science of model search" (ICML 2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.config.needs import Rules
from rtrain.config.sweep_conf import SweepConf
from rtrain.searches import base
from rtrain.searches.base import BEGINS, Objective, Point


@dataclass(kw_only=True)
class Conf(SweepConf):
    """Points proposed by hyperopt's TPE."""

    needs: ClassVar[Rules] = (*SweepConf.needs, BEGINS.of("num_startup_trials"))

    num_trials: Annotated[int, Field(ge=1)] = 20
    """Number of trials. If raised later, the command resumes the same sweep."""

    num_startup_trials: Annotated[int, Field(ge=1)] = 20
    """Trials drawn at random before it begins to learn."""


class Search(base.Search):
    """Points proposed by hyperopt's TPE."""

    Conf = Conf
    requires = ("hyperopt",)
    extra = "sweep"

    def __init__(self, conf: Any, axes: Sequence[Axis], goals: Sequence[Objective]) -> None:
        super().__init__(conf, axes, goals)
        from hyperopt import Trials
        from hyperopt.base import Domain

        self._domain = Domain(lambda point: 0.0, {axis.name: _distribution(axis) for axis in axes})
        self._trials = Trials()
        self._asked: dict[Point, list[Any]] = {}
        """Results not yet passed to hyperopt, by point."""
        self._number, self._num_again = -1, 0
        """Of the newest trial that was asked for, and how often it was asked for again."""

    def propose(self, number: int) -> Point:
        """Ask hyperopt."""
        from hyperopt import tpe

        ids = self._trials.new_trial_ids(1)
        self._num_again = self._num_again + 1 if number == self._number else 0
        self._number = number
        # Each proposal has its own seed, and a sweep that is resumed the same one.
        seed = (self.conf.seed + 1_000_003 * (number + 1) + number + self._num_again) % 2**31
        startup = self.conf.num_startup_trials
        (made,) = tpe.suggest(ids, self._domain, self._trials, seed, n_startup_jobs=startup, verbose=False)
        point = tuple(_text(axis, made["misc"]["vals"][axis.name][0]) for axis in self.axes)
        self._asked.setdefault(point, []).append(made)
        return point

    def learn(self, point: Point, values: Sequence[float] | None) -> None:
        """Tell hyperopt, unless there is no value: a sweep that is resumed does not know what was refused before."""
        from hyperopt import JOB_STATE_DONE, STATUS_OK

        made = self._asked[point].pop() if self._asked.get(point) else self._document(point)
        if made is None or values is None:
            return
        loss = -values[0] if self.goals[0].mode == "max" else values[0]
        made["state"], made["result"] = JOB_STATE_DONE, {"status": STATUS_OK, "loss": float(loss)}
        self._trials.insert_trial_docs([made])
        self._trials.refresh()

    def _document(self, point: Point) -> Any:
        """Return what hyperopt keeps of a point that it did not propose; None for one of a space that was changed."""
        texts = dict(zip((axis.name for axis in self.axes), point, strict=True))
        if not all(axis.holds(texts[axis.name]) for axis in self.axes):
            return None
        number = self._trials.new_trial_ids(1)[0]
        values = {axis.name: [_value(axis, texts[axis.name])] for axis in self.axes}
        misc = {"tid": number, "cmd": self._domain.cmd, "idxs": {name: [number] for name in values}, "vals": values}
        (made,) = self._trials.new_trial_docs([number], [None], [self._domain.new_result()], [misc])
        return made


def _distribution(axis: Axis) -> Any:
    from hyperopt import hp

    if axis.values:
        return hp.choice(axis.name, list(axis.values))
    if axis.log:
        low, high = math.log(axis.low), math.log(axis.high)
        return hp.qloguniform(axis.name, low, high, 1) if axis.is_int else hp.loguniform(axis.name, low, high)
    if axis.is_int:
        return hp.uniformint(axis.name, axis.low, axis.high)
    return hp.uniform(axis.name, axis.low, axis.high)


def _text(axis: Axis, value: Any) -> str:
    if axis.values:
        return axis.values[int(value)]
    return axis.text(min(max(float(value), axis.low), axis.high))  # a rounded logarithm leaves the interval


def _value(axis: Axis, text: str) -> Any:
    return axis.values.index(text) if axis.values else float(text)
