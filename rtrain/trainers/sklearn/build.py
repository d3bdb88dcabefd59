"""Build the estimator of a config, and tell what it can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.sklearn.class_names import take_class_names
from rtrain.trainers.sklearn.config import Conf
from rtrain.trainers.sklearn.feature_names import take_categories, take_feature_names


def build_estimator(conf: Conf, info: DatasetInfo, seed: int, builder: Builder) -> Any:
    """Build the estimator, with seed, categories, and classes and columns by number, where it takes them.

    Raises:
        ConfigError: It is not an estimator, or names a class or a column that the data lacks.
    """
    estimator = builder.build(conf.estimator, "trainer.estimator")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        made = type(estimator).__name__
        raise ConfigError(f"trainer.estimator: {conf.estimator['_target_']} returns a {made}, not an estimator.")
    estimator.set_params(**dict.fromkeys(_left_open(estimator, "random_state"), seed))
    take_categories(estimator, info)
    take_class_names(estimator, info)
    take_feature_names(estimator, info)
    return estimator


def _left_open(estimator: Any, name: str) -> Iterator[str]:
    """Yield the parameters called ``name``, of the estimator and the parts in it, that are None."""
    for key, value in estimator.get_params(deep=True).items():
        if value is None and key.rpartition("__")[2] == name:
            yield key


def takes_categories(estimator: Any) -> bool:
    """Return whether the estimator has an argument for the categorical features."""
    return "categorical_features" in estimator.get_params(deep=False)


def weight_argument(estimator: Any) -> str | None:
    """Return the argument of ``fit`` that takes the rows' weights; None if there is none."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    parts = _parts_given_the_same(estimator)
    if parts is not None:
        arguments = {weight_argument(part) for part in parts}
        return arguments.pop() if len(arguments) == 1 else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _parts_given_the_same(estimator: Any) -> list[Any] | None:
    """Return the estimators in one whose ``fit`` hands its arguments on to them; None for every other one."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

    match estimator:
        case GridSearchCV() | RandomizedSearchCV():
            return [estimator.estimator]
        case TransformedTargetRegressor():
            return [LinearRegression() if estimator.regressor is None else estimator.regressor]
        case VotingClassifier() | VotingRegressor():
            return [part for _, part in estimator.estimators if part != "drop"]
        case StackingClassifier() | StackingRegressor():
            final = [] if estimator.final_estimator is None else [estimator.final_estimator]
            return [part for _, part in estimator.estimators if part != "drop"] + final
        case _:
            return None
