"""What can be wrong with a sklearn config and be found before anything starts."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import has_fit_parameter

from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, TargetError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import check_monitors, check_no_missing, check_task, dataset_of
from rtrain.trainers.sklearn.build import build_estimator, takes_categories, weight_argument
from rtrain.trainers.sklearn.config import Conf
from rtrain.trainers.sklearn.loop import epochs_conf
from rtrain.trainers.sklearn.scoring import check_scoring


def check_conf(job: Job) -> None:
    """Check the estimator, and what is asked of it.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    info = dataset_of(job)
    check_task("sklearn", info, ("classification", "regression"))
    _check_scaling(job)
    check_monitors(epochs_conf(conf, info), info, job)
    job.builder.check_node(conf.estimator, "trainer.estimator")
    estimator = build_estimator(conf, info, job.conf.run.seed, job.builder)
    _check_arguments(estimator, conf)
    _check_kind(estimator, conf, info)
    _check_epochs(estimator, conf, info)
    check_scoring(estimator, job)
    _check_missing(estimator, info)


def _check_scaling(job: Job) -> None:
    scaling = job.conf.scaling
    if scaling.num_workers > 1:
        raise ConfigError(
            f"scikit-learn fits on one worker, not on {scaling.num_workers}.",
            to_try("num_workers=1 scaling.cpus_per_worker=4")
            + "\ntrainer.parallel=ray spreads trees, folds and candidates over a cluster.",
        )
    if scaling.use_gpu:
        raise ConfigError("scaling.use_gpu: scikit-learn computes on CPUs.", to_try("use_gpu=false"))


def _check_arguments(estimator: Any, conf: Conf) -> None:
    """Have the estimator and each part of it check its arguments, as ``fit`` does."""
    for path, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        # A custom estimator declares no constraints, and checks its arguments itself.
        if isinstance(part, BaseEstimator) and hasattr(part, "_parameter_constraints"):
            try:
                part._validate_params()
            except InvalidParameterError as error:
                raise _refused(str(error), path.split("__") if path else [], conf) from error


def _refused(message: str, path: Sequence[str], conf: Conf) -> ConfigError:
    """Return the error that says what scikit-learn does of an argument, at its key if the config spells it out."""
    argument = re.match(r"The '(\w+)' parameter", message)
    node: Any = conf.estimator
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    if argument is None or not isinstance(node, Mapping) or argument[1] not in node:
        return ConfigError(f"trainer.estimator: {message}")
    return TargetError(".".join(["trainer", "estimator", *path, argument[1]]), message)


def _check_kind(estimator: Any, conf: Conf, info: DatasetInfo) -> None:
    """Find an estimator that can't learn what the dataset is for, or not all of what it says."""
    name = type(estimator).__name__
    fits = is_classifier if info.task == "classification" else is_regressor
    if not fits(estimator):
        ends = ("Regressor", "Classifier") if info.task == "classification" else ("Classifier", "Regressor")
        target = str(conf.estimator["_target_"])
        module, _, twin = target.replace(*ends).rpartition(".")
        is_there = twin.endswith(ends[1]) and hasattr(sys.modules.get(module), twin)
        raise ConfigError(
            f"trainer.estimator: {target} is not a {ends[1].lower()}, but {info.name} is for {info.task}.",
            to_try(f"trainer.estimator._target_={module}.{twin}") if is_there else None,
        )
    if info.categories and not any(map(_knows_categories, (estimator, *estimator.get_params(deep=True).values()))):
        raise ConfigError(
            f"trainer.estimator: {name} needs numbers, but {', '.join(list(info.categories)[:3])} of {info.name} are "
            "categorical.",
            "Use sklearn.ensemble.HistGradientBoosting..., or a sklearn.pipeline.make_pipeline with an encoder first.",
        )
    if "weight" in info.columns and weight_argument(estimator) is None:
        raise ConfigError(
            f"trainer.estimator: {name} does not support weights, but the rows of {info.name} have some.",
            "Remove the dataset's weights, or use another estimator.",
        )


def _knows_categories(part: Any) -> bool:
    """Return whether a part of an estimator may encode categories, or learn from them; one of the user's may."""
    if not isinstance(part, BaseEstimator):
        return False
    is_sklearns = type(part).__module__.startswith("sklearn.")
    encodes = type(part).__name__.endswith("Encoder") or isinstance(part, ColumnTransformer | FunctionTransformer)
    return encodes or not is_sklearns or takes_categories(part)


def _check_epochs(estimator: Any, conf: Conf, info: DatasetInfo) -> None:
    if conf.max_epochs is None:
        return
    name = type(estimator).__name__
    if not hasattr(estimator, "partial_fit"):
        raise ConfigError(
            f"trainer.max_epochs: {name} has no partial_fit, so it can't train in epochs.",
            to_try("max_epochs=null", "or use an estimator that has it, e.g. SGDClassifier or MLPClassifier"),
        )
    if "weight" in info.columns and not has_fit_parameter(estimator.__class__, "sample_weight"):
        raise ConfigError(f"trainer.max_epochs: {name} does not support weights.", to_try("max_epochs=null"))


def _check_missing(estimator: Any, info: DatasetInfo) -> None:
    if not get_tags(estimator).input_tags.allow_nan and not isinstance(estimator, Pipeline):
        trees = "sklearn.ensemble.HistGradientBoosting..."
        ways = f"put a sklearn.impute.SimpleImputer before it in a Pipeline, or use {trees}"
        check_no_missing(type(estimator).__name__, info, ways=ways)
