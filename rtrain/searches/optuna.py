"""Points proposed by Optuna: by default with TPE, a model of which values good trials have and bad ones have not.

Source: Bergstra et al., "Algorithms for hyper-parameter optimization" (NeurIPS 2011); Akiba et al., "Optuna: A
next-generation hyperparameter optimization framework" (KDD 2019).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from rtrain.config.compose.search_space import Axis
from rtrain.config.needs import Need, Rules
from rtrain.config.sweep_conf import SweepConf
from rtrain.config.value_types.texts import one_of
from rtrain.errors import ConfigError
from rtrain.plugins import check_installed
from rtrain.searches import base
from rtrain.searches.base import BEGINS, Objective, Point

SAMPLERS = ("tpe", "random", "gp", "cmaes", "nsgaii")
EVOLVING = ("cmaes", "nsgaii")
"""Samplers that know more than values: which generation a trial was proposed for."""
MOST_AGAIN = 20
"""Proposals for one trial of an evolving sampler, when a sweep is resumed."""

LEARNING = Need(
    met=lambda way: way.conf.sweep.sampler in ("tpe", "gp", "cmaes"),
    otherwise="this sweep.sampler has no startup trials",
    instead="It is for sweep.sampler=tpe, gp and cmaes",
    keys=("sweep.sampler",),
)


@dataclass(kw_only=True)
class Conf(SweepConf):
    """Points proposed by Optuna."""

    needs: ClassVar[Rules] = (*SweepConf.needs, LEARNING.of("num_startup_trials"), BEGINS.of("num_startup_trials"))

    num_trials: Annotated[int, Field(ge=1)] = 20
    """Number of trials. If raised later, the command resumes the same sweep."""

    sampler: Annotated[str, *one_of(*SAMPLERS)] = "tpe"
    """What proposes: ``tpe``, ``random``, ``gp`` (a Gaussian process), ``cmaes`` (an evolution strategy for numbers,
    which needs the package cmaes) or ``nsgaii`` (a genetic algorithm, made for several metrics)."""

    num_startup_trials: Annotated[int, Field(ge=1)] = 10
    """Trials drawn at random before ``tpe``, ``gp`` and ``cmaes`` begin to learn."""


class Search(base.Search):
    """Points proposed by Optuna."""

    Conf = Conf
    requires = ("optuna",)
    extra = "sweep"
    many_goals = True

    def __init__(self, conf: Any, axes: Sequence[Axis], goals: Sequence[Objective]) -> None:
        super().__init__(conf, axes, goals)
        if conf.sampler == "cmaes":
            check_installed("sweep.sampler 'cmaes'", ("cmaes",), None)
            if len(goals) > 1:
                raise ConfigError("sweep.sampler: cmaes optimizes only one metric.", "Use tpe, gp or nsgaii.")
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        directions = ["maximize" if goal.mode == "max" else "minimize" for goal in goals]
        self._study = optuna.create_study(directions=directions)
        self._number: int | None = None
        """Of the newest trial that was asked for."""
        self._space = {axis.name: _distribution(axis) for axis in axes}
        self._asked: dict[Point, list[Any]] = {}
        """Results not yet passed to Optuna, by point."""
        self._num_again = 0 if conf.sampler in EVOLVING else None
        """Number of trials of a sweep that is resumed which were proposed again; None where that is of no use."""

    def _sampler(self, seed: int) -> Any:
        from optuna import samplers

        startup = self.conf.num_startup_trials
        # Running trials are assumed to be bad (constant liar), so that parallel trials explore elsewhere.
        made = {
            "tpe": lambda: samplers.TPESampler(seed=seed, n_startup_trials=startup, constant_liar=True),
            "random": lambda: samplers.RandomSampler(seed=seed),
            "gp": lambda: samplers.GPSampler(seed=seed, n_startup_trials=startup),
            "cmaes": lambda: samplers.CmaEsSampler(
                seed=seed, n_startup_trials=startup, warn_independent_sampling=False
            ),
            "nsgaii": lambda: samplers.NSGAIISampler(seed=seed),
        }
        return made[self.conf.sampler]()

    def propose(self, number: int) -> Point:
        """Ask Optuna."""
        if number != self._number:  # a sweep that was interrupted before it proposes what it would have proposed
            self._number = number
            self._study.sampler = self._sampler(random.Random(f"{self.conf.seed}/{number}").getrandbits(31))
        trial = self._study.ask(self._space)
        point = tuple(_text(axis, trial.params[axis.name]) for axis in self.axes)
        self._asked.setdefault(point, []).append(trial)
        return point

    def learn(self, point: Point, values: Sequence[float] | None) -> None:
        """Tell Optuna."""
        import optuna

        state = optuna.trial.TrialState.FAIL if values is None else optuna.trial.TrialState.COMPLETE
        if not self._asked.get(point) and self._num_again is not None:
            self._propose_again(point, self._num_again)
        if self._asked.get(point):
            trial = self._asked[point].pop()
            self._study.tell(trial, None if values is None else list(values), state=state)
            return
        if all(
            axis.holds(text) for axis, text in zip(self.axes, point, strict=True)
        ):  # the axes may have changed since
            params = {axis.name: _value(axis, text) for axis, text in zip(self.axes, point, strict=True)}
            told = None if values is None else list(values)
            made = optuna.trial.create_trial(params=params, distributions=self._space, values=told, state=state)
            self._study.add_trial(made)

    def _propose_again(self, point: Point, number: int) -> None:
        """Have the sampler propose a trial as it did before the sweep was interrupted, so that it knows its generation.

        Of trials that were trained at the same time, the order is another one, and so are the proposals.
        """
        for _ in range(MOST_AGAIN):
            proposed = self.propose(number)
            if proposed == point:
                self._num_again = number + 1
                return
            self.learn(proposed, None)  # excluded, or there before
        self._num_again = None


def _distribution(axis: Axis) -> Any:
    """Return an axis as Optuna knows it: an interval, or one of several values that have no order."""
    from optuna import distributions

    if axis.values:
        return distributions.CategoricalDistribution(axis.values)
    if axis.is_int:
        return distributions.IntDistribution(round(axis.low), round(axis.high), log=axis.log)
    return distributions.FloatDistribution(axis.low, axis.high, log=axis.log)


def _text(axis: Axis, value: Any) -> str:
    return str(value) if axis.values else axis.text(value)


def _value(axis: Axis, text: str) -> Any:
    if axis.values:
        return text
    return int(text) if axis.is_int else float(text)
