"""LightGBM's parameters: what the dataset and the run add to the user's, and which names there are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.silenced import silenced
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, TrainingError
from rtrain.trainers.base import Job
from rtrain.trainers.lightgbm.config import Conf
from rtrain.trainers.lightgbm.metrics import METRICS, OF_PROBABILITIES, deciding, needs_margins
from rtrain.trainers.lightgbm.names import OBJECTIVES, all_names, main_name, main_objective, ours, usual_objective
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
from rtrain.trainers.trained import CheckpointMetadata
from rtrain.trainers.worker import Worker

UNCUT = {"dart": "later rounds change the weights of earlier trees"}
"""Kinds of boosting that give no model of an earlier round; LightGBM itself refuses early stopping with it too."""
FORESTS = ("rf", "random_forest")
"""Names of the kind of boosting that averages trees."""
MULTI = ("multiclass", "multiclassova")
"""Objectives with one sum of trees for each class."""
GPUS = ("gpu", "cuda")
"""Values of ``device_type`` that use a GPU: by OpenCL, which LightGBM's wheels have, and by CUDA."""


def all_params(conf: Conf, info: DatasetInfo, *, seed: int, use_gpu: bool, num_threads: int) -> dict[str, Any]:
    """Return the user's parameters under their main names, completed."""
    given = numbered_constraints({main_name(name) or name: value for name, value in conf.params.items()}, info)
    usual: dict[str, Any] = {"verbosity": -1, "deterministic": True, "force_row_wise": True}
    if "force_col_wise" in given:
        del usual["force_row_wise"]
    sums = _num_sums(conf, given, info)
    usual |= {"objective": "multiclass", "num_class": sums} if sums > 1 else usual_objective(info)
    if "metric" not in given:
        usual |= usual_metric(conf, info, given.get("objective"), sums)
    device = given.get("device_type", GPUS[0]) if use_gpu else "cpu"
    return {**usual, **given, "seed": seed, "num_threads": num_threads, "device_type": device}


def _num_sums(conf: Conf, given: Mapping[str, Any], info: DatasetInfo) -> int:
    """Return how many sums of trees a row has: one for each class, or one of two classes, a regression or a ranking.

    A custom objective may use both sums of two classes.
    """
    if info.task != "classification" or info.num_classes is None:
        return 1
    own = conf.objective_function is not None and str(given.get("num_class")) == str(info.num_classes)
    multi = main_objective(str(given.get("objective"))) in MULTI
    return info.num_classes if info.num_classes > 2 or multi or own else 1


def worker_params(worker: Worker, info: DatasetInfo) -> dict[str, Any]:
    """Return the parameters of one worker, the addresses of all of them included where there are several.

    Without these LightGBM trains on each worker's own rows alone, and says nothing.
    """
    conf: Conf = worker.conf
    threads = conf.num_threads or worker.num_threads
    params = all_params(conf, info, seed=worker.run.seed, use_gpu=worker.use_gpu, num_threads=threads)
    if worker.world_size == 1:
        return params
    from rtrain.trainers.loops.rendezvous import fresh_addresses

    # LightGBM can't open a port again that it has used.
    machines = fresh_addresses(worker.rank, worker.world_size)
    port = int(machines[worker.rank].rpartition(":")[2])
    network = {"num_machines": len(machines), "machines": ",".join(machines), "local_listen_port": port}
    # Bins come from a sample of the rows, in which a rare value must not make its feature useless.
    return {"tree_learner": "data", "feature_pre_filter": False, **params, **network, "pre_partition": True}


def usual_metric(conf: Conf, info: DatasetInfo, objective: str | None, sums: int) -> dict[str, Any]:
    """Return the parameter ``metric``; early stopping goes by the first one.

    Where the config names an objective, that is the objective's own, as in LightGBM alone.
    """
    if conf.metric_functions or needs_margins(conf, info):
        return {"metric": ["None"]}  # an empty list would be the objective's own
    if objective is None or main_objective(objective) in ("binary", *MULTI):
        return {"metric": usual_metrics(info, sums)}
    return {}


def usual_metrics(info: DatasetInfo, sums: int) -> list[str]:
    """Return the metrics of the dataset's task; the first one is that of its objective."""
    if info.task == "ranking":
        return ["ndcg"]
    if info.task == "regression":
        return ["l2", "l1"]
    return ["binary_logloss", "binary_error"] if sums == 1 else ["multi_logloss", "multi_error"]


def check_params(job: Job) -> None:
    """Check the parameters' names against LightGBM's own table, and their values by having LightGBM take them.

    Raises:
        ConfigError: Names the key.
    """
    conf: Conf = job.conf.trainer
    info = job.data.info
    check_names(conf.params, all_names(), ours(), Conf)
    check_once(conf.params, lambda name: main_name(name) or name)
    params = all_params(conf, info, seed=0, use_gpu=False, num_threads=1)
    _check_objective(params, info, conf.params)
    check_num_class(params.get("num_class"), info, [_num_sums(conf, params, info)], str(params["objective"]))
    _check_forest(params, info)
    check_start(job.data, params.get("num_class"))
    _check_device(job, params)
    check_early_stopping(conf, "boosting", params.get("boosting"), UNCUT, "gbdt")
    try:
        with silenced():  # LightGBM prints what it raises
            reported = _reported_metrics(params, info)
            unknown = [one for one in _metrics(params) if not _reported_metrics({**params, "metric": one}, info)]
    except (ValueError, TypeError, lightgbm.basic.LightGBMError) as error:
        with silenced():
            unknown = [one for one in _metrics(params) if one.partition("@")[0] not in METRICS]
            found = refused("LightGBM", _plain(error), conf.params, lambda some: _takes(conf, info, some))
        raise _no_metric(conf.params, unknown[0]) if unknown else ConfigError(*found) from error
    if unknown:
        raise _no_metric(conf.params, unknown[0])
    if conf.objective_function is not None and info.task == "classification":
        check_measures(reported, OF_PROBABILITIES, "trainer.params.metric")


def reported(job: Job) -> tuple[str, ...] | None:
    """Return the metrics that rounds report; None where functions of the user choose them, or measure margins."""
    conf: Conf = job.conf.trainer
    info = job.data.info
    if conf.metric_functions or conf.objective_function is not None:
        return None
    params = all_params(conf, info, seed=0, use_gpu=False, num_threads=1)
    return reported_rounds(conf, info, _reported_metrics(params, info), deciding)


def check_init(job: Job, wrote: CheckpointMetadata) -> None:
    """Find why the trees of another run can't be built on.

    Raises:
        ConfigError: They were grown for other features or another objective, or are to be averaged.
    """
    conf: Conf = job.conf.trainer
    info, then = job.data.info, wrote.trainer
    usual = usual_objective(info)["objective"]
    given = [{main_name(name) or name: value for name, value in one.items()} for one in (then["params"], conf.params)]
    own = (then["objective_function"], conf.objective_function)
    before, now = (one or params.get("objective", usual) for one, params in zip(own, given, strict=True))
    check_trees(info, wrote, (before, now))
    if any(params.get("boosting") in FORESTS for params in given):
        raise ConfigError(
            "run.init_from: a random forest (trainer.params.boosting) averages independent trees.",
            "Leave run.init_from out.",
        )


def _check_forest(params: Mapping[str, Any], info: DatasetInfo) -> None:
    if "base_margin" in info.columns and params.get("boosting") in FORESTS:
        raise ConfigError(
            "dataset.base_margin: the trees of a random forest (trainer.params.boosting) are averaged and can't start "
            "from scores.",
            "Remove one of them.",
        )


def _takes(conf: Conf, info: DatasetInfo, given: Mapping[str, Any]) -> bool:
    """Return whether LightGBM takes some parameters of a config."""
    some = replace(conf, params=dict(given))
    try:
        _reported_metrics(all_params(some, info, seed=0, use_gpu=False, num_threads=1), info)
    except (ValueError, TypeError, lightgbm.basic.LightGBMError):
        return False
    return True


SAMPLED = 400
"""Rows that metrics are asked with: some have to be left in the share of them that a tree is grown on."""


def _reported_metrics(params: Mapping[str, Any], info: DatasetInfo) -> list[str]:
    """Return LightGBM's metrics under the names that it reports, ``l1`` for ``mean_absolute_error`` say."""
    # Of a regression what any objective takes: positive, and a probability.
    kinds = np.array([0.5, 1.0]) if info.task == "regression" else np.arange(max(2, info.num_classes or 0))
    times = max(1, SAMPLED // len(kinds))
    labels = np.tile(kinds, times)
    data = lightgbm.Dataset(
        np.zeros((len(labels), math.prod(info.input_shape))),
        label=labels,
        group=[len(kinds)] * times if info.task == "ranking" else None,
        init_score=np.zeros(len(labels)) if "base_margin" in info.columns and not info.num_classes else None,
        categorical_feature=[info.feature_names.index(name) for name in info.categories],
        params=dict(params),
    )
    return [name for _, name, *_ in lightgbm.Booster(dict(params), data).eval_train()]


def _check_device(job: Job, params: Mapping[str, Any]) -> None:
    """Find a device that was asked for in another way than by ``scaling.use_gpu``, or that LightGBM doesn't have."""
    scaling = job.conf.scaling
    given = {main_name(name): value for name, value in job.conf.trainer.params.items()}.get("device_type")
    if given is not None and (given not in GPUS or not scaling.use_gpu):
        raise ConfigError(
            f"trainer.params.device_type={given} conflicts with scaling.use_gpu={str(scaling.use_gpu).lower()}.",
            "Set use_gpu=true for a GPU; device_type then selects gpu (OpenCL) or cuda.",
        )
    if not scaling.use_gpu:
        return
    try:
        with silenced():  # what it raises, and what OpenCL says when it compiles
            _reported_metrics({**params, "device_type": given or GPUS[0]}, job.dataset.info)  # type: ignore[union-attr]
    except lightgbm.basic.LightGBMError as error:
        # Workers may have GPUs that this machine lacks, but it is the same LightGBM.
        if scaling.num_workers == 0 or "not enabled in this build" in str(error):
            raise ConfigError(
                f"scaling.use_gpu: LightGBM can't use device_type={given or GPUS[0]}: {_plain(error)}",
                _other_device(given),
            ) from error


def _other_device(given: str | None) -> str:
    """Return what to try in the place of a device that LightGBM can't use."""
    if given == "cuda":
        return to_try("trainer.params.device_type=gpu", "or install a LightGBM that was built for CUDA")
    return to_try("use_gpu=false", "or trainer.params.device_type=cuda with a LightGBM that was built for CUDA")


def _metrics(params: Mapping[str, Any]) -> list[str]:
    """Return the metrics that the parameters ask for."""
    given = params.get("metric", ())
    names = given if isinstance(given, (list, tuple)) else str(given).split(",")
    return [str(name) for name in names if str(name) not in ("", "None", "none", "null", "na", "custom")]


def _plain(error: Exception) -> str:
    """Return LightGBM's message without the place in its source."""
    return re.sub(r" at /\S+, line \d+ \.\s*$", "", str(error))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn an error of LightGBM into one line without the place in its source.

    Raises:
        TrainingError: LightGBM's own is its cause.
    """
    try:
        yield
    except lightgbm.basic.LightGBMError as error:
        raise TrainingError(f"LightGBM: {_plain(error)}") from error


def _no_metric(given: Mapping[str, Any], wrong: str) -> ConfigError:
    """Return the error about a metric that LightGBM doesn't have."""
    name = next(one for one in given if main_name(one) == "metric")
    hint = hint_about_value(Conf, name, given[name], wrong, METRICS)
    return ConfigError(f"trainer.params.{name}: LightGBM has no metric '{wrong}'.", hint)


def _check_objective(params: Mapping[str, Any], info: DatasetInfo, given: Mapping[str, Any]) -> None:
    classes = {"binary": 2, "multiclass": info.num_classes, "multiclassova": info.num_classes}
    if info.task == "classification":
        classes["cross_entropy"] = 2  # of a regression its labels are probabilities
    objective = main_objective(str(params["objective"]))
    if objective not in OBJECTIVES:
        name = next(one for one in given if main_name(one) == "objective")
        hint = hint_about_value(Conf, name, given[name], str(given[name]), _fitting_objectives(info))
        raise ConfigError(f"trainer.params.{name}: LightGBM has no objective '{given[name]}'.", hint)
    is_for = "classification" if objective in classes else "ranking" if "rank" in objective else "regression"
    if is_for != info.task or classes.get(objective, info.num_classes) != info.num_classes:
        shown = f"{info.task} of {info.num_classes} classes" if info.num_classes else info.task
        raise ConfigError(
            f"trainer.params.objective: {objective} is for {is_for}, but {info.name} is for {shown}.",
            f"Leave it out for {usual_objective(info)['objective']}, or choose another dataset.task.",
        )


def _fitting_objectives(info: DatasetInfo) -> list[str]:
    """Return the objectives, those of the dataset's task first."""
    usual = usual_objective(info)["objective"]
    return sorted(OBJECTIVES, key=lambda one: not one.startswith(usual))
