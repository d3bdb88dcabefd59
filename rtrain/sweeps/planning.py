"""Everything that can be found out of a sweep before its first trial starts."""

from __future__ import annotations

from rtrain.cluster import Cluster, StartingCluster
from rtrain.config.session import Composed
from rtrain.config.trials import Plan, Trials
from rtrain.errors import ConfigError
from rtrain.preparation import check_job
from rtrain.scaling import check_feasible
from rtrain.searches.base import Point, Search
from rtrain.sweeps.data import Data
from rtrain.sweeps.record import SweepRecord
from rtrain.sweeps.trial import Trial
from rtrain.training import SilentObserver

MAX_TRIES = 1000
"""Proposals in a row that are excluded, or were made before, after which a search is taken to have no more."""


class Planner:
    """Makes trials of the points that a search proposes.

    Args:
        trials: What the command asks for.
        search: Proposes points.
        record: The trials that are there.
    """

    def __init__(self, trials: Trials, search: Search, record: SweepRecord) -> None:
        self._trials, self._search, self._record = trials, search, record
        self._asked: set[str] = set()
        self._there = {trials.key(one.point): one for one in record.trials if _fits(one, trials)}
        self._proposed = len(record.trials) if search.adaptive else 0

    def next(self) -> tuple[Trial, Plan] | None:
        """Return the next trial that the search proposes, composed and checked; None if there are no more.

        Raises:
            ConfigError: Something is wrong with it.
        """
        for _ in range(MAX_TRIES):
            point = self._search.propose(self._proposed)
            if point is None:
                return None
            self._proposed += 1
            found = self._enroll(point)
            if found is not None:
                return found
            if self._search.adaptive:
                self._search.learn(self._proposed - 1, point, None)
        return None

    def _enroll(self, point: Point) -> tuple[Trial, Plan] | None:
        """Return the trial of a point, unless it is excluded, or was asked for before."""
        key = self._trials.key(point)
        if key in self._asked:
            return None
        self._asked.add(key)
        trial = self._there.get(key)
        number = len(self._record.trials) if trial is None else trial.number
        plan = self._trials.plan(number, point)
        if plan is None:
            return None
        if trial is None:
            words = [plan.composed.scrub(word) for word in self._trials.words(point)]
            name, mark = self._trials.name(number, point), plan.composed.config_hash
            trial = Trial(number=number, point=point, overrides=words, name=name, config_hash=mark)
            self._record.trials.append(trial)
        elif trial.config_hash != plan.composed.config_hash:
            _refuse_other_config(trial, plan, self._trials)
        return trial, plan

    def plan(self, trial: Trial) -> Plan:
        """Compose a trial again."""
        plan = self._trials.plan(trial.number, trial.point)
        assert plan is not None, "it was not excluded before"
        return plan


def _fits(trial: Trial, trials: Trials) -> bool:
    return len(trial.point) == len(trials.axes)


def _refuse_other_config(trial: Trial, plan: Plan, trials: Trials) -> None:
    raise ConfigError(
        f"{trials.folder} holds this sweep with another config: trial {trial.name} would not be the same any more.",
        "Change the config back, or begin another sweep: sweep.name=NAME",
    )


class Checks:
    """What is asked of each trial before the first one starts; what trials share is asked once.

    Args:
        data: Reads what they train on.
        starting: The cluster, if they need one.
    """

    def __init__(self, data: Data, starting: StartingCluster | None) -> None:
        self._data, self._starting = data, starting
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster | None:
        """The cluster, which answers."""
        if self._starting is not None and self._cluster is None:
            self._cluster = self._starting.wait()
        return self._cluster

    def check(self, composed: Composed) -> None:
        """Check a trial.

        Raises:
            ConfigError: It can't be trained, by its plugin's word, or on this cluster.
        """
        check_job(composed, self._data.of(composed), SilentObserver())
        if self.cluster is not None:
            nodes = self.cluster.nodes
            rest = [word for word in composed.command if not word.startswith("scaling.num_workers=")]
            check_feasible(composed.conf.scaling, nodes, " ".join([*rest, "--multirun"]))
