"""Everything that can be found out of a sweep before its first trial starts."""

from __future__ import annotations

import json
import pickle
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rtrain.cluster.ray_cluster import Cluster
from rtrain.config.compose.search_space import is_several
from rtrain.config.composed import Composed
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.config.secrets.masked import mask_word
from rtrain.config.trials import Plan, Trials
from rtrain.errors import ConfigError, NotEnoughResourcesError, TargetError
from rtrain.plugins import named_plugin
from rtrain.runs.observer import SilentObserver
from rtrain.runs.status import Status
from rtrain.searches.base import Objective, Point, Search
from rtrain.sweeps.cluster import SweepCluster
from rtrain.sweeps.data import Data
from rtrain.sweeps.factory import check_reported
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial, as_typed
from rtrain.sweeps.resources import ResourceTracker, shape_of
from rtrain.sweeps.same_config import check_same, check_source, hash_of
from rtrain.sweeps.same_data import TrainedRows
from rtrain.trainers.base import Job, TrainerPlugin
from rtrain.trainers.registry import has_own_loop, trainer_of
from rtrain.training.preparation import check_job, check_room, try_job
from rtrain.training.resuming import differences, may_change_anyway

MAX_TRIES = 1000
"""Proposals in a row that are excluded, or were made before, after which a search is taken to have no more."""
PATIENCE = 20
"""Such proposals of an adaptive search after which points are drawn at random instead."""


class Planner:
    """Makes trials of the points that a search proposes.

    Args:
        trials: The trials of the command.
        search: Proposes points.
        record: The existing trials.

    Raises:
        ConfigError: They are those of another config, or vary other keys.
    """

    def __init__(self, trials: Trials, search: Search, record: SweepRecord) -> None:
        self._trials, self._search, self._record = trials, search, record
        self._name = type(search).__module__
        self._asked: set[str] = set()
        self._packed: dict[int, bytes] = {}
        """By number, trials that were composed: a few KB each, so that a thousand of them may wait."""
        check_source(trials.folder, trials.source[0])
        _reorder_points(record, trials)
        self._there = {one.name.partition("-")[2]: one for one in record.trials}
        self._proposed, self._has_more = 0, True
        self.changing: frozenset[str] = frozenset()
        """Keys of the config that differ between trials, where a scheduler changes them in resumed runs."""

    def next(self) -> tuple[Trial, Plan] | None:
        """Return the next trial that the search proposes, composed and checked; None if there are no more.

        Raises:
            ConfigError: Something is wrong with it.
        """
        ask = self._ask_adaptive if self._search.adaptive else self._ask
        for tries in range(MAX_TRIES if self._has_more else 0):
            with named_plugin(self._name, self._search):
                point = ask(tries)
            if point is None:
                return None
            point = self._checked(point)
            found = self._enroll(point)
            if found is not None:
                return found
            if self._search.adaptive and tries < PATIENCE:
                self._search.learn(point, None)
        self._has_more = False
        return None

    def _checked(self, point: Any) -> Point:
        """Return a proposal that is a point.

        Raises:
            ConfigError: It is something else.
        """
        axes, proposes = self._trials.axes, f"the search {self._name} proposes"
        if not isinstance(point, tuple | list):
            hint = "It has a text for each of self.axes, in their order."
            raise ConfigError(f"{proposes} {point!r}: a point is a tuple, not a {type(point).__name__}.", hint)
        if len(point) != len(axes):
            raise ConfigError(
                f"{proposes} {len(point)} values for {len(axes)} parameters.",
                "A point has a value for each of self.axes, in their order.",
            )
        for axis, value in zip(axes, point, strict=True):
            if not isinstance(value, str):
                hint = "A value is a text, as a command line has it: axis.text(value) of a number in an interval."
                raise ConfigError(f"{proposes} {value!r} for {axis.name}, not a text.", hint)
            if "," in value and is_several(value):
                raise ConfigError(f"{proposes} several values for {axis.name}: {value}.", "A trial has one.")
        return tuple(point)

    def _ask(self, _: int) -> Point | None:
        self._proposed += 1
        return self._search.propose(self._proposed - 1)

    def _ask_adaptive(self, tries: int) -> Point | None:
        """Ask the search, or draw at random once it sticks to points that were there before or are excluded."""
        number = len(self._record.trials)
        if number >= self._search.num_trials:
            return None
        if tries < PATIENCE:
            return self._search.propose(number)
        rng = random.Random(f"{self._trials.conf.seed}/{number}/{tries}")
        return tuple(axis.draw(rng) for axis in self._trials.axes)

    def known(self) -> Iterator[tuple[Trial, Plan]]:
        """Yield the existing trials, composed and checked.

        Raises:
            ConfigError: The config has changed since.
        """
        for trial in list(self._record.trials):
            found = self._enroll(trial.point)
            if found is not None:
                yield found

    def samples(self) -> Iterator[Point]:
        """Yield points that together hold each value of each axis, and both ends of intervals; one at a time varies."""
        first = tuple(axis.first for axis in self._trials.axes)
        yield first
        for place, axis in enumerate(self._trials.axes):
            for value in axis.values or (axis.text(axis.low), axis.text(axis.high)):
                if value != first[place]:
                    yield (*first[:place], value, *first[place + 1 :])

    def sampled(self) -> Iterator[tuple[Sequence[str], Plan]]:
        """Yield the overrides of such points and their trials, composed.

        Raises:
            ConfigError: Something is wrong with one.
        """
        for point in self.samples():
            words = self._trials.words(point)
            with named(words, "a trial"):
                plan = self._trials.plan(0, point)
            if plan is not None:
                yield words, plan

    def _enroll(self, point: Point) -> tuple[Trial, Plan] | None:
        """Return the trial of a point, unless it is excluded, or was asked for before."""
        key = self._trials.key(point)
        if key in self._asked:
            return None
        self._asked.add(key)
        trial = self._there.get(key)
        number = len(self._record.trials) if trial is None else trial.number
        try:
            plan = self._trials.plan(number, point)
        except ConfigError as error:
            if trial is not None or not self._search.adaptive:
                raise of_trial(error, self._trials.words(point), f"trial {number}") from error
            self._note_failed(number, point, error)
            return None
        if plan is None:
            return None
        if trial is None:
            words = [plan.composed.redact(word) for word in self._trials.words(point)]
            name, mark = self._trials.name(number, point), hash_of(plan.composed)
            trial = Trial(number=number, point=point, overrides=words, name=name, config_hash=mark)
            trainer = plan.composed.resolved["trainer"]
            if not has_own_loop(trainer):
                trial.max_epochs = trainer.get("max_epochs", trainer.get("num_boost_round"))
            self._record.trials.append(trial)
        else:
            check_same(trial, plan.composed, self._record)
            trial.config_hash = hash_of(plan.composed)
        trial.point = tuple(point)  # numbers of rows in sweep.zip may be others now
        self._packed[number] = zlib.compress(pickle.dumps(plan), level=1)
        return trial, plan

    def _note_failed(self, number: int, point: Point, error: ConfigError) -> None:
        """Keep a trial that can't be composed: others were trained before it was thought of."""
        told = {"type": "ConfigError", "message": error.message}
        words, name = [mask_word(word) for word in self._trials.words(point)], self._trials.name(number, point)
        trial = Trial(number=number, point=point, overrides=words, name=name, config_hash="", status=Status.FAILED)
        trial.error, trial.reason = told, error.message.partition("\n")[0]
        self._record.trials.append(trial)

    def plan(self, trial: Trial) -> Plan:
        """Return a trial as it was composed; again, if its values have changed since."""
        if not trial.lineage:
            packed: Plan = pickle.loads(zlib.decompress(self._packed[trial.number]))
            return packed
        plan = self._trials.plan(trial.number, trial.point_now(self._trials.axes), trial.name)
        if plan is None:  # what it has now is excluded, but its checkpoint is there
            raise ConfigError("sweep.exclude excludes what the scheduler has chosen for a trial.")
        return replace(plan, may_change=self.changing)

    def check_changes(self) -> None:
        """Check that a run can resume with other values of all varied keys.

        Raises:
            ConfigError: It can't; names the key.
        """
        plans = [self._trials.plan(0, point) for point in self.samples()]
        first, *others = [plan.composed for plan in plans if plan is not None]
        keys = {key for other in others for key, _ in differences(first.resolved, other.resolved)}
        plugin = trainer_of(first.resolved["trainer"])
        able = plugin.exploitable(first.resolved["trainer"])
        for key in sorted(keys):
            anyway = may_change_anyway(key, plugin.resumable) and not key.startswith(("dataset.", "datasets."))
            if not anyway and not any(_is_below(key, f"trainer.{one}") for one in able):
                raise ConfigError(
                    f"{key}: a scheduler that moves checkpoints between trials can't change it in a run that "
                    "continues.",
                    f"It can change: {', '.join(f'trainer.{one}' for one in sorted(able)) or 'nothing'}",
                )
        self.changing = frozenset(keys)


@contextmanager
def named(overrides: Sequence[str], what: str) -> Iterator[None]:
    """Say of which trial a mistake is."""
    try:
        yield
    except ConfigError as error:
        raise of_trial(error, overrides, what) from error


def of_trial(error: ConfigError, overrides: Sequence[str], what: str) -> ConfigError:
    """Return an error that names its trial."""
    words = as_typed([mask_word(word) for word in overrides])
    message = f"{error.message}\n  in {what}: {words}"
    if isinstance(error, TargetError):  # the session names the place
        return TargetError(error.key, message.removeprefix(f"{error.key}: "), error.hint)
    return ConfigError(message, error.hint)


def _is_below(key: str, part: str) -> bool:
    return (key == part or key.startswith(f"{part}.")) and not key.endswith("._target_")


def _reorder_points(record: SweepRecord, trials: Trials) -> None:
    """Put the points of existing trials into the order of the axes, which may have changed."""
    before, now = record.axes_before, [axis.name for axis in trials.axes]
    if record.trials and sorted(before) != sorted(now):
        raise ConfigError(
            f"{shown(record.folder)} contains a sweep of {', '.join(before)}; this one is of {', '.join(now)}.",
            "Vary the same keys (to add values, list old and new ones), or start another sweep: sweep.name=NAME",
        )
    for trial in record.trials:
        values = dict(zip(before, trial.point, strict=True))
        trial.point = tuple(values[name] for name in now)


def check_resume(composed: Composed) -> None:
    """Raise a ConfigError if a trial is to resume by itself."""
    if composed.conf.run.resume != "never":
        raise ConfigError("run.resume can't be set in a sweep: sweeps resume automatically.", "Leave it out.")


class Checks:
    """What is asked of each trial before the first one starts; what trials share is asked once.

    Args:
        data: Reads what they train on.
        cluster: Where they are trained, unless none of them needs one.
        command: The command, for one that would do.
        notice: Takes a line for the user; each line comes once, whichever trials it is about.
    """

    def __init__(
        self, data: Data, cluster: SweepCluster, command: Sequence[str], notice: Callable[[str], None]
    ) -> None:
        self._data, self._shared, self._command, self._notice = data, cluster, command, notice
        self._cluster: Cluster | None = None
        self.trained = TrainedRows(notice)
        self.goals: Sequence[Objective] = ()
        """What the sweep looks for."""
        self._told: set[str] = set()
        self._tried: set[str] = set()
        """What trials train, of those that have been tried out."""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster, which answers, and which trials share."""
        starting = self._shared.starting
        if starting is not None and self._cluster is None:
            self._cluster = replace(starting.wait(), shared=True)
        return self._cluster

    def check(self, composed: Composed) -> None:
        """Check a trial; one whose data doesn't fit together with that of others is checked when it starts.

        Raises:
            ConfigError: It can't be trained, by its plugin's word, or on this cluster, or won't report what the sweep
            looks for.
        """
        check_resume(composed)
        self._shared.prepare(composed)
        if not self._data.expect(composed):
            return
        job, plugin = self._check_job(composed)
        if job.dataset is not None:
            self.trained.check(composed, job.dataset.info)
        if self.goals:
            check_reported([goal.metric for goal in self.goals], plugin.reports(job), job.conf.trainer)
        for text in (*composed.notices, *job.notices):
            if text not in self._told:
                self._told.add(text)
                self._notice(text)
        if self.cluster is not None:
            check_room(job, plugin, self.cluster, self._command)
            _check_places(composed, self.cluster)

    def check_sampled(self, planner: Planner) -> None:
        """Check each value that a search may propose once, and both ends of intervals: its trials are not known yet.

        Raises:
            ConfigError: A trial with one of them can't be trained.
        """
        for words, plan in planner.sampled():
            with named(words, "a trial"):
                self.check(plan.composed)

    def reported(self, composed: Composed) -> Sequence[str] | None:
        """Return the metrics that a trial reports; None where only the trial itself knows them.

        Raises:
            ConfigError: It can't be trained.
        """
        job, plugin = self._check_job(composed)
        return plugin.reports(job)

    def marked(self, plan: Plan) -> Plan:
        """Return a trial that says whether another one, or it itself, has shown that it can be built."""
        return replace(plan, tried=_decisive(plan.composed) in self._tried)

    def _check_job(self, composed: Composed) -> tuple[Job, TrainerPlugin]:
        decisive = _decisive(composed)  # before the checks: they put a checkpoint in the place of run.init_from
        job, plugin = check_job(composed, self._data.of(composed), SilentObserver())
        if decisive not in self._tried:
            try_job(job, plugin)
            self._tried.add(decisive)
        return job, plugin


def _decisive(composed: Composed) -> str:
    """Return all that decides whether a trial can be built and take a first step: seeds, names and places don't."""
    trainer = composed.resolved["trainer"]
    decides = trainer_of(trainer).decides_first_step(trainer)
    parts = [decides, *(composed.resolved[section] for section in ("dataset", "datasets", "scaling"))]
    return json.dumps([*parts, composed.conf.run.init_from], sort_keys=True, default=str)


def _check_places(composed: Composed, cluster: Cluster) -> None:
    """Refuse a trial that would wait for its resources forever, because its strategy is strict.

    Raises:
        NotEnoughResourcesError: The nodes are too few, or too small.
    """
    shape = shape_of(composed, own_cluster=cluster.own)
    if not ResourceTracker(cluster.nodes).fits(shape):
        raise NotEnoughResourcesError(
            f"scaling.placement_strategy: {shape.num_workers} workers can't be placed with {shape.strategy}; the "
            f"cluster has {len(cluster.nodes)} {'node' if len(cluster.nodes) == 1 else 'nodes'}.",
            to_try("scaling.placement_strategy=PACK", "or SPREAD"),
        )
