"""Boosted trees, whatever the library: what happens after each round, and what is checked before the first one.

A round counts as a step and as an epoch: each one sees all rows. Checkpoints are written at the end, after every
``run.checkpoint.every_steps`` rounds, and every ``every_seconds``; ``every_epochs`` is left to trainers whose epochs
take longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.checkpoints import Writer
from rtrain.text.numbers import number_text
from rtrain.trainers.async_writer import in_turn
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import check_float32, check_roles, dataset_of
from rtrain.trainers.loops.boosting.conf import BoostingConf
from rtrain.trainers.loops.boosting.init_model import InitialModel
from rtrain.trainers.loops.boosting.progress import RoundProgress
from rtrain.trainers.loops.callbacks.base import Training, WorkerCallback
from rtrain.trainers.loops.callbacks.calls import Callbacks
from rtrain.trainers.loops.collectives import Collectives
from rtrain.trainers.loops.control import LoopControl, is_due
from rtrain.trainers.loops.directions import check_targets, monitored, not_reported
from rtrain.trainers.loops.monitor import Monitor, StopConditions, goal_names
from rtrain.trainers.loops.not_finite import NotFiniteError
from rtrain.trainers.loops.number_ranges import check_numbers
from rtrain.trainers.worker import Worker

CHOSEN = {"eval_metric", "metric", "metrics", "metric_types"}
"""Parameters by which users choose metrics."""
USUAL_PATIENCE = 10
"""Rounds without improvement after which a notice recommends early stopping, or a metric should have a value."""
TASKS = ("classification", "regression", "ranking")
DERIVED: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "logloss": ("loss", float),
    "mlogloss": ("loss", float),
    "binary_logloss": ("loss", float),
    "multi_logloss": ("loss", float),
    "error": ("accuracy", lambda value: 1 - value),
    "merror": ("accuracy", lambda value: 1 - value),
    "binary_error": ("accuracy", lambda value: 1 - value),
    "multi_error": ("accuracy", lambda value: 1 - value),
    "rmse": ("mse", lambda value: value**2),
    "l2": ("mse", float),
    "l1": ("mae", float),
}
"""The libraries' metrics under the names that all of rtrain's trainers share."""


def with_shared_names(metrics: Mapping[str, float], task: str) -> dict[str, float]:
    """Return metrics, e.g. ``test/logloss``, and add ``test/loss``, ``test/accuracy`` and ``test/mse``.

    The squared error is the loss of a regression only; the loss of a classification is the logarithmic one.
    """
    found = dict(metrics)
    for name, value in metrics.items():
        split, _, metric = name.rpartition("/")
        if metric in DERIVED:
            shared, convert = DERIVED[metric]
            found.setdefault(f"{split}/{shared}", convert(value))
        if metric in ("rmse", "l2") and task == "regression":
            found.setdefault(f"{split}/loss", found[f"{split}/mse"])
    return found


def eval_splits(conf: BoostingConf, info: DatasetInfo) -> list[str]:
    """Return the splits to evaluate."""
    if conf.eval_splits is not None:
        return list(conf.eval_splits)
    return [name for name in ("val", "test") if info.num_rows.get(name)][:1]


def check_boosting(conf: BoostingConf, job: Job) -> None:
    """Check the dataset's task, the splits and the user's functions.

    Raises:
        ConfigError: Names the key.
    """
    info = dataset_of(job)
    if info.task not in TASKS or info.dtype == "object":
        raise ConfigError(
            f"the {job.trainer_name} trainer supports rows of numbers for {', '.join(TASKS)}, but {info.name} "
            f"is for {info.task}{' of texts' if info.dtype == 'object' else ''}."
        )
    if info.task == "ranking" and "group" not in info.columns:
        raise ConfigError("a ranking needs the queries of its rows.", "Set their column: dataset.group=query_id")
    roles = ("weight", "base_margin", "group")
    check_roles(job.trainer_name, info, roles if info.task == "ranking" else roles[:2])
    check_float32(job.trainer_name, info)
    for name in conf.eval_splits or ():
        if name not in info.num_rows:
            there = ", ".join(info.num_rows)
            raise ConfigError(f"trainer.eval_splits: {info.name} has no split {name}, only {there}.")
    early, best = conf.early_stopping, job.conf.run.checkpoint.best.monitor
    if early is not None and not eval_splits(conf, info):
        splits = [name for name in ("val", "test") if info.num_rows.get(name)]
        hint = f"trainer.eval_splits=[{splits[0]}]" if splits else "dataset.split.val=0.2"
        raise ConfigError("trainer.early_stopping needs a split to evaluate on.", to_try(hint))
    if early is not None and None not in (early.monitor, best) and early.monitor != best:
        raise ConfigError(
            f"trainer.early_stopping.monitor={early.monitor}: the best round is already chosen by {best} "
            "(run.checkpoint.best.monitor), and a model has only one best round.",
            "Use one metric",
        )
    check_numbers(conf.params, "trainer.params", conf.params)
    functions(conf, job.builder)


def functions(conf: BoostingConf, builder: Builder) -> tuple[Any, list[Any]]:
    """Return the user's objective (or None) and metrics, each of which gets predictions and the library's dataset.

    Raises:
        ConfigError: One does not exist, or can't be called with these arguments.
    """
    objective = conf.objective_function
    return (
        None if objective is None else builder.locate_function(objective, "trainer.objective_function", 2),
        [builder.locate_function(path, "trainer.metric_functions", 2) for path in conf.metric_functions],
    )


def flat(x: np.ndarray) -> np.ndarray:
    """Return rows of any shape as (rows, features), a view where that is possible."""
    return x if x.ndim == 2 else x.reshape(len(x), -1)


def group_sizes(group: np.ndarray) -> np.ndarray:
    """Return the rows of each query, (queries,), of (rows,) numbers that are equal within a query."""
    borders = np.flatnonzero(np.diff(group)) + 1
    return np.diff(np.concatenate([[0], borders, [len(group)]]))


def usable_names(info: DatasetInfo) -> list[str] | None:
    """Return the features' names where both libraries take them as they are; else None."""
    names = list(info.feature_names)
    forbidden = set('[]<>{}",:\\ ')
    return names if names and not any(forbidden & set(name) for name in names) else None


def named_importance(info: DatasetInfo, values: Mapping[int, float], limit: int = 200) -> dict[str, float]:
    """Return the importance of features by name, the largest first, of values by their number."""
    names = info.feature_names or tuple(f"f{index}" for index in range(max(values, default=-1) + 1))
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return {names[index]: float(value) for index, value in ordered[:limit] if value > 0}


class Rounds:
    """What happens after each round: reports, checkpoints, early stopping, and stopping when asked to.

    Args:
        worker: Services of this worker.
        conf: Limits.
        ranks: All workers; they stop at the same round.
        deciding: Chooses the metric that decides, from all that the library reports of the last evaluated split,
            unless the config names one; all workers see the same values of it.
        snapshot: Copies the model and returns what writes it into a folder; gets the number of rounds that a prediction
            should use: up to the best one with early stopping; 0 for all of them.
        beginning: Where training begins.
    """

    def __init__(
        self,
        worker: Worker,
        conf: BoostingConf,
        ranks: Collectives,
        deciding: Callable[[Sequence[str]], str],
        snapshot: Callable[[int], Writer],
        beginning: InitialModel,
    ) -> None:
        folder = beginning.resumed
        self._worker, self._conf, self._deciding, self._copied = worker, conf, deciding, snapshot
        self._task = "" if worker.dataset is None else worker.dataset.info.task
        self.progress = RoundProgress() if folder is None else RoundProgress.load(folder)
        self.control = LoopControl(worker, conf, ranks, self.progress)
        """Its monitor is known when the library has reported its metrics, whose names only it can tell."""
        self.callbacks = Callbacks((), self.training(lambda: None), worker.notice)
        self._reason = self.control.over_before()

    def training(self, model: Callable[[], Any]) -> Training:
        """Return what callbacks see, of which ``model`` returns the Booster."""
        return Training(self._worker, self.progress, lambda: (model(), None), self.control.signal.ask)

    def call(self, own: Sequence[WorkerCallback], model: Callable[[], Any]) -> None:
        """Call callbacks from now on."""
        self.callbacks = Callbacks(own, self.training(model), self._worker.notice)
        self.callbacks.tell(WorkerCallback.train_begin)

    def before_round(self) -> None:
        """Call callbacks before a round."""
        self.callbacks.tell(WorkerCallback.epoch_begin)
        self.callbacks.tell(WorkerCallback.step_begin, None)

    def done(self) -> bool:
        """Return whether no further round is wanted; every worker asks before each round."""
        self._reason = self._reason or self.control.reason()
        if not self._reason and self.control.signal.save_agreed():
            self.checkpoint()
        return bool(self._reason)

    def end(self) -> None:
        """Write the last checkpoint, and tell why training ends before its last round."""
        if self.control.saves_at_end(self._reason):
            self.checkpoint()
        self.callbacks.tell(WorkerCallback.train_end)
        self.control.describe_end(self._reason)

    def after_round(self, metrics: Mapping[str, float], modes: Mapping[str, str] | None = None) -> None:
        """Count a round, report its metrics, and write a checkpoint if one is due.

        Args:
            metrics: What the library reports, e.g. ``test/logloss``.
            modes: ``min`` or ``max`` by name, as far as the library says it.

        Raises:
            ConfigError: The config asks to judge by a metric whose direction is unknown.
            TrainingError: It asks to judge by one that is not reported, or that is NaN or infinite.
        """
        progress = self.progress
        progress.move_to(progress.step + 1)
        progress.metrics = with_shared_names(metrics, self._task)
        self._worker.alive(progress.step)
        if progress.metrics and self.control.monitor.name is None:
            self.control.monitor = self._monitor_of(list(metrics), modes or {})
            progress.judge_by(self.control.monitor)
            name, mode = self.control.monitor.identity
            self._worker.describe_model({"judged_by": {"monitor": name, "mode": mode}} if mode else {})
        monitor, early = self.control.monitor, self._conf.early_stopping
        value = progress.metrics.get(str(monitor.name), math.nan)
        if progress.metrics:
            self._worker.report(progress.metrics, step=progress.step, epoch=progress.epoch)
            self._check_finite(value)
        progress.judge(value, monitor, 0.0 if early is None else early.min_delta)
        self._tell_of_round()
        if is_due(self._worker.run.checkpoint.every_steps, progress.step):
            self.checkpoint()

    def _tell_of_round(self) -> None:
        self.callbacks.tell(WorkerCallback.step_end, None)
        self.callbacks.tell(WorkerCallback.epoch_end)
        if self.progress.metrics:
            self.callbacks.tell(WorkerCallback.evaluated, dict(self.progress.metrics))

    def _check_finite(self, value: float) -> None:
        """Fail where the deciding metric is NaN or infinite."""
        if math.isfinite(value):
            return
        name, progress = str(self.control.monitor.name), self.progress
        if not progress.was_finite and self._may_be_undefined(name):
            if progress.step == 1:
                self._worker.notice(f"{name} is {value:g} in the first round: it is possibly undefined for these rows")
            return
        raise NotFiniteError(
            f"{name} of round {progress.step} is {value:g}, not a finite number.",
            "Labels or weights are too large, or it is undefined for the rows of its split: auc needs both classes. "
            "Correct them, or use another metric: run.checkpoint.best.monitor",
        )

    def _may_be_undefined(self, name: str) -> bool:
        """Return whether a metric that was never finite is not yet a failure.

        A metric that the config names may have no value yet, e.g. a correlation with predictions that are all the same.
        It has as many rounds as early stopping waits for an improvement. A metric that decides nothing, where others
        are finite, has all rounds.
        """
        conf, progress = self._conf, self.progress
        monitor = monitored(self._worker.run.checkpoint.best, conf)
        if not (monitor or conf.metric_functions or CHOSEN & conf.params.keys()):
            return False
        patience = USUAL_PATIENCE if conf.early_stopping is None else conf.early_stopping.patience
        if progress.step < min(patience, conf.num_boost_round):
            return True
        split = name.rpartition("/")[0]
        others = [one for key, one in progress.metrics.items() if key.rpartition("/")[0] == split and key != name]
        return not (conf.early_stopping or monitor) and any(map(math.isfinite, others))

    def checkpoint(self) -> None:
        """Write a checkpoint of this round, once."""
        if self.control.must_save():
            metrics = self.progress.best_metrics if self._rounds_to_predict() else self.progress.metrics
            self.callbacks.tell(WorkerCallback.before_save)
            self.control.save(self._snapshot, metrics=metrics, score=self._score(metrics))
            self.callbacks.tell(WorkerCallback.after_save)

    def _rounds_to_predict(self) -> int:
        return self.progress.rounds_to_predict(stops_early=self._conf.early_stopping is not None)

    def _score(self, metrics: Mapping[str, float]) -> dict[str, Any] | None:
        """Return the score of the rounds that a prediction uses; the newest model holds all rounds before it.

        Where the config names the metric, and a prediction uses all rounds, models are compared with each other.
        """
        score, best_round = self.control.monitor.score(metrics), self.progress.best_round
        if score is None:
            return None
        if self._rounds_to_predict():
            return {**score, "step": best_round, "epoch": best_round, "newest": True}
        return score if self._worker.run.checkpoint.best.monitor is not None else {**score, "newest": True}

    def _monitor_of(self, reported: Sequence[str], modes: Mapping[str, str]) -> Monitor:
        """Return the metric that decides, and look at the goals with the directions that the library reports."""
        split = eval_splits(self._conf, self._worker.data.info)[-1]
        own = [name for name in reported if name.rpartition("/")[0] == split]
        best, stop = self._worker.run.checkpoint.best, self._worker.run.stop
        directions = self._worker.directions.reported(modes)
        monitor = Monitor.of(best, self._conf, directions, self._deciding(own))
        there = self.progress.metrics
        of_stopping = best.monitor is None and monitored(best, self._conf) is not None
        decides = "trainer.early_stopping.monitor" if of_stopping else "run.checkpoint.best.monitor"
        for name, key in {**goal_names(stop), str(monitor.name): decides}.items():
            if name not in there:
                wrong = not_reported(key, name, [*own, *there], self._conf)
                raise TrainingError(wrong.message, wrong.hint)
        if monitor.mode is None and (best.monitor is not None or self._conf.early_stopping is not None):
            directions.needed(str(monitor.name), "run.checkpoint.best.mode")
        check_targets(stop.targets, directions)
        self.control.goals = StopConditions(stop, directions)
        return monitor

    def describe(self, importance: Mapping[str, Mapping[str, float]]) -> None:
        """Describe the rounds in the manifest, and notify the user if no feature is used in them.

        Args:
            importance: Of each feature that is used, by measure; ``weight`` is one of them.
        """
        progress = self.progress
        before = {"rounds_before": progress.rounds_before} if progress.rounds_before else {}
        facts = {"num_rounds": progress.step, "best_round": progress.best_round, "best_value": progress.best, **before}
        self._worker.describe_model({**facts, "feature_importance": importance})
        if progress.step and not importance.get("weight"):
            self._worker.notice(
                f"nothing was learned in {progress.step} rounds: no feature is used. There are too few rows for the "
                "limits in trainer.params, or the labels differ too little (XGBoost ignores splits that gain less "
                "than 1e-6)"
            )
        self._notice_best_round()

    def _notice_best_round(self) -> None:
        """Tell the user of a round that was better than the last one, which the model is, if it was long ago.

        A resumed run in which nothing was left to train has told it before.
        """
        progress, name = self.progress, self.control.monitor.name
        rounds_since = progress.step - progress.best_round
        chosen = self._conf.early_stopping or self._worker.run.checkpoint.best.monitor
        if name is None or progress.best is None or chosen or rounds_since < USUAL_PATIENCE:
            return
        self._worker.notice(
            f"{name} was best in round {progress.best_round}: {number_text(progress.best)}. The model has all "
            f"{progress.step} rounds: {number_text(progress.metrics[name])}. To end at the best one: "
            f"trainer.early_stopping={{patience: {USUAL_PATIENCE}}}"
        )

    def _snapshot(self) -> Writer:
        return in_turn(self._copied(self._rounds_to_predict()), replace(self.progress).save)
