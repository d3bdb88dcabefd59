"""XGBoost's parameters: what the dataset and the run add to the user's, and which names there are."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost

from rtrain.cluster.scaling import refuse_shared_gpu
from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import Dataset, DatasetInfo, ResidentSplit
from rtrain.errors import ConfigError, TrainingError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.boosting.init_model import check_trees
from rtrain.trainers.loops.boosting.judged import reported_rounds
from rtrain.trainers.loops.boosting.params import (
    check_early_stopping,
    check_measures,
    check_names,
    check_num_class,
    check_once,
    check_start,
    hint_about_value,
    numbered_constraints,
    refused,
)
from rtrain.trainers.loops.boosting.rounds import eval_splits, usable_names
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.worker import Worker
from rtrain.trainers.xgboost.inputs import check_grades, feature_types, metrics_of, tell_of_small_labels
from rtrain.trainers.xgboost.metrics import MODES, OF_PROBABILITIES, Metrics, deciding, gives_margins
from rtrain.trainers.xgboost.names import ALIASES, BOOSTERS, OURS, known_names, try_out

if TYPE_CHECKING:
    from rtrain.trainers.xgboost.config import Conf

UNCUT = {
    "dart": "later rounds change the weights of earlier trees",
    "gblinear": "all rounds change the same weights",
}
"""Boosters that give no model of an earlier round; XGBoost's slices and ranges of rounds don't bring it back."""
_NOT_USED = re.compile(r'"([^"]+)"')
"""Names in a warning of XGBoost: Parameters: { "max_depth", "top_k" } are not used."""
_UNKNOWN = {
    "eval_metric": r"Unknown metric function (\S+)",
    "objective": r"Unknown objective function: `(.*)`",
    "booster": r"Unknown gbm type (\S+)",
}
"""How XGBoost names a value that it doesn't know, by parameter."""
TASK_OF = {
    **{"binary": "classification", "multi": "classification", "rank": "ranking"},
    **{"reg": "regression", "count": "regression", "survival": "regression"},
}
"""What objectives are for, by what their names begin with."""


def all_params(conf: Conf, info: DatasetInfo, *, seed: int, use_gpu: bool, num_threads: int) -> dict[str, Any]:
    """Return the user's parameters, completed.

    Random numbers of a round depend on the seed and the round alone, so that a resumed run grows the same trees.
    """
    usual: dict[str, Any] = {"seed_per_iteration": True, "verbosity": 1}
    if conf.objective_function is None:
        usual["objective"] = usual_objective(info)
    if _num_sums(conf, info) > 1:
        usual["num_class"] = info.num_classes
    if "eval_metric" not in conf.params:
        if info.task == "classification" and gives_margins(conf):
            usual["disable_default_eval_metric"] = True  # ``OfMargins`` takes its place
        elif not conf.metric_functions and "objective" not in conf.params:
            usual["eval_metric"] = usual_metrics(info)
    given = numbered_constraints(conf.params, info)
    for name, as_taken in (("monotone_constraints", tuple), ("interaction_constraints", str)):
        if isinstance(given.get(name), list):
            given[name] = as_taken(given[name])
    device = "cuda" if use_gpu else "cpu"
    return {**usual, **given, "seed": seed, "nthread": num_threads, "device": device}


def _num_sums(conf: Conf, info: DatasetInfo) -> int:
    """Return how many sums of trees a row has: one for each class, or one of two classes, a regression or a ranking."""
    classes = info.num_classes or 1 if info.task == "classification" else 1
    return 1 if classes == 2 and not str(conf.params.get("objective", "")).startswith("multi:") else classes


def worker_params(worker: Worker, info: DatasetInfo) -> dict[str, Any]:
    """Return the parameters of one worker."""
    conf: Conf = worker.conf
    threads = conf.num_threads or worker.num_threads
    return all_params(conf, info, seed=worker.run.seed, use_gpu=worker.use_gpu, num_threads=threads)


def usual_objective(info: DatasetInfo) -> str:
    """Return the objective of the dataset's task."""
    if info.task == "ranking":
        return "rank:ndcg"
    if info.task == "regression":
        return "reg:squarederror"
    return "binary:logistic" if info.num_classes == 2 else "multi:softprob"


def usual_metrics(info: DatasetInfo) -> list[str]:
    """Return the metrics of the dataset's task; early stopping goes by the last one."""
    if info.task == "ranking":
        return ["ndcg@1", "ndcg@3", "ndcg@5"]
    if info.task == "regression":
        return ["mae", "rmse"]
    return ["error", "logloss"] if info.num_classes == 2 else ["merror", "mlogloss"]


def check_params(job: Job) -> None:
    """Check the parameters' names against those of XGBoost, and their values by having XGBoost take them.

    Raises:
        ConfigError: Names the key.
    """
    conf: Conf = job.conf.trainer
    info, given = job.data.info, conf.params
    check_names(given, known_names(), OURS, type(conf))
    check_once(given, lambda name: ALIASES.get(name, name))
    check_early_stopping(conf, "booster", given.get("booster"), UNCUT, "gbtree")
    error = _refusal(conf, info)
    if error is None or re.search(_UNKNOWN["objective"], str(error)) is None:
        _check_objective(str(given.get("objective", "")), info)
    sums = _num_sums(conf, info)
    default = 0 if sums == 1 else sums  # XGBoost takes 0 for 1
    allowed = {sums, default, sums if conf.objective_function is None else info.num_classes}
    check_num_class(given.get("num_class"), info, allowed, str(given.get("objective", usual_objective(info))))
    params = all_params(conf, info, seed=0, use_gpu=False, num_threads=1)
    check_start(job.data, params.get("num_class"))
    if error is not None:
        _check_driver(error)
        message, hint = refused("XGBoost", _first_line(error), given, lambda some: _refusal(conf, info, some) is None)
        raise ConfigError(message, hint or _way_out(error, type(conf), given)) from error
    if info.task == "classification" and gives_margins(conf):
        check_measures(metrics_of(params), OF_PROBABILITIES, "trainer.params.eval_metric")
    _check_labels(job.data)
    check_grades(job.data, params, eval_splits(conf, info))
    tell_of_small_labels(job.data, params.get("objective"))
    _check_gpu(job)


def reported(job: Job) -> tuple[str, ...] | None:
    """Return the metrics that rounds report; None where functions of the user choose them, or measure margins."""
    conf: Conf = job.conf.trainer
    info = job.data.info
    if conf.metric_functions or gives_margins(conf):
        return None
    rows = _few_rows(info, of_metrics=True)
    booster = try_out(all_params(conf, info, seed=0, use_gpu=False, num_threads=1), _few_rows(info))
    found = Metrics((), output_margin=False).measure(booster, [(rows, "few")], 0)
    return reported_rounds(conf, info, [name.removeprefix("few/") for name in found], deciding)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn an error of XGBoost into one line without its stack; parameters that it doesn't use were named before.

    Raises:
        TrainingError: XGBoost's own is its cause.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"(?s).*Parameters: \{.*\} are not used")
            yield
    except xgboost.core.XGBoostError as error:
        raise TrainingError(f"XGBoost: {_first_line(error)}") from error


def _check_labels(dataset: Dataset) -> None:
    """Refuse labels that XGBoost, which keeps them as float32, treats as infinite."""
    for name, split in dataset.splits.items():
        y = split.columns["y"] if isinstance(split, ResidentSplit) else np.zeros(0)
        too_large = ~(np.abs(y) <= np.finfo(np.float32).max)
        if too_large.any():
            raise ConfigError(
                f"dataset.label: a label of the split '{name}' is {y[too_large.argmax()]:g}, beyond XGBoost's float32.",
                "Correct it, or use another unit, e.g. labels divided by a thousand.",
            )


def check_init(job: Job, wrote: CheckpointMetadata) -> None:
    """Find why the trees of another run can't be built on.

    Raises:
        ConfigError: They were grown for other features, or another objective or kind of model.
    """
    conf: Conf = job.conf.trainer
    info, then = job.data.info, wrote.trainer
    before, now = (
        own or params.get("objective", usual_objective(info))
        for own, params in (
            (then["objective_function"], then["params"]),
            (conf.objective_function, conf.params),
        )
    )
    check_trees(info, wrote, (before, now))
    kinds = tuple(params.get("booster", "gbtree") for params in (then["params"], conf.params))
    if kinds[0] != kinds[1]:
        raise ConfigError(
            f"run.init_from: its model has the booster {kinds[0]}, not {kinds[1]}.",
            f"Set trainer.params.booster={kinds[0]}, or leave run.init_from out.",
        )


def device_of(booster: xgboost.Booster) -> str:
    """Return where XGBoost computes: also ``cpu`` where it is configured to use a GPU and sees none."""
    return str(json.loads(booster.save_config())["learner"]["generic_param"]["device"]).partition(":")[0]


def _check_driver(error: Exception) -> None:
    """Tell an error of CUDA from one of the parameters: some metrics of XGBoost start CUDA to compute on a CPU too."""
    if "cudaError" in str(error):
        raise ConfigError(
            f"XGBoost can't start CUDA on this machine: {_first_line(error)}",
            "Make a GPU visible (CUDA_VISIBLE_DEVICES), or install xgboost-cpu instead, with use_gpu=false.",
        ) from error


def _check_gpu(job: Job) -> None:
    scaling = job.conf.scaling
    if not scaling.use_gpu:
        return
    refuse_shared_gpu(scaling)
    if not xgboost.build_info().get("USE_CUDA", False):
        raise ConfigError("scaling.use_gpu: this XGBoost was built without CUDA.", to_try("use_gpu=false"))
    if scaling.num_workers == 0 and not _sees_gpu():
        raise ConfigError("scaling.use_gpu: XGBoost sees no GPU on this machine.", to_try("use_gpu=false"))


def _sees_gpu() -> bool:
    rows = xgboost.DMatrix(np.zeros((2, 1)), label=[0, 1])
    return device_of(try_out({"device": "cuda"}, rows)) == "cuda"


def _check_objective(objective: str, info: DatasetInfo) -> None:
    kind = objective.partition(":")[0]
    task = info.task if objective == "reg:logistic" and info.num_classes == 2 else TASK_OF.get(kind, info.task)
    if objective == "multi:softmax":
        raise ConfigError(
            "trainer.params.objective: multi:softmax returns no probabilities.",
            to_try("trainer.params.objective=multi:softprob"),
        )
    if objective == "survival:aft":
        raise ConfigError(
            "trainer.params.objective: survival:aft needs a lower and an upper bound for each label, but rows have "
            "only one.",
            to_try("trainer.params.objective=survival:cox", "where the label of a censored row is negative"),
        )
    if task != info.task:
        raise ConfigError(
            f"trainer.params.objective: {objective} is for {task}, but {info.name} is for {info.task}.",
            f"Leave it out for {usual_objective(info)}, or choose another dataset.task.",
        )
    if kind == "binary" and info.num_classes != 2:
        raise ConfigError(
            f"trainer.params.objective: {objective} is for 2 classes, but {info.name} has {info.num_classes}.",
            to_try("trainer.params.objective=multi:softprob"),
        )


def _few_rows(info: DatasetInfo, *, of_metrics: bool = False) -> xgboost.DMatrix:
    """Return a row of zeros for each class, or two of a regression or ranking, with the features' names and kinds.

    Args:
        info: The dataset.
        of_metrics: Labels of a regression are what any metric takes, 0 and 1; else what any objective does: positive,
            and a probability.
    """
    labels = np.arange(info.num_classes or 2) if info.task != "regression" or of_metrics else np.array([0.5, 1.0])
    return xgboost.DMatrix(
        np.zeros((len(labels), math.prod(info.input_shape))),
        label=labels,
        qid=np.zeros(len(labels)) if info.task == "ranking" else None,
        feature_names=usable_names(info),
        feature_types=feature_types(info),
        enable_categorical=True,
    )


def _refusal(conf: Conf, info: DatasetInfo, given: Mapping[str, Any] | None = None) -> Exception | None:
    """Return why XGBoost refuses the parameters of the config, or some of them; None if it takes them."""
    some = conf if given is None else replace(conf, params=dict(given))
    params = all_params(some, info, seed=0, use_gpu=False, num_threads=1)
    try:
        try_out(params, _few_rows(info)).eval(_few_rows(info, of_metrics=True))
    except (ValueError, xgboost.core.XGBoostError) as error:
        return error
    return None


def unused_params(conf: Conf, info: DatasetInfo) -> list[str]:
    """Return the parameters of the config that XGBoost warns of: the booster or objective doesn't use them."""
    params, rows = all_params(conf, info, seed=0, use_gpu=False, num_threads=1), _few_rows(info)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            xgboost.Booster({**params, "verbosity": 1}, [rows]).update(rows, 0)
    except (ValueError, TypeError, xgboost.core.XGBoostError):  # the check of the parameters names what is refused
        return []
    named = {name for one in caught for name in _NOT_USED.findall(str(one.message).partition("Parameters:")[2])}
    return [name for name in conf.params if name in named & known_names()]


def _first_line(error: Exception) -> str:
    """Return XGBoost's message without the place in its source and the stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and "Stack trace" not in line]
    return re.sub(r"^\[[\d:]+\] \S+:\d+: (Check failed: .*?: )?", "", lines[0]) if lines else type(error).__name__


def _way_out(error: Exception, conf: type, given: Mapping[str, Any]) -> str | None:
    """Return what may be meant by a value that XGBoost doesn't know, or the values that there are."""
    candidates = re.findall(r"^Objective candidate: (\S+)", str(error), re.MULTILINE)
    known = {"eval_metric": list(MODES), "objective": candidates, "booster": BOOSTERS}
    for name, pattern in _UNKNOWN.items():
        wrong = re.search(pattern, str(error))
        if wrong is not None:
            hint = hint_about_value(conf, name, given.get(name), wrong[1].partition("@")[0], known[name])
            if hint.endswith("=multi:softmax"):
                return "multi:softmax returns no probabilities\n" + to_try("trainer.params.objective=multi:softprob")
            return hint
    return None
