"""Arguments that name columns: configs name them as the data does, estimators get rows whose columns have numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.pipeline import Pipeline

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError

BY_COLUMN = ("monotonic_cst", "categorical_features")
"""Arguments that may name columns: a mapping from them, a list of them."""


def take_feature_names(estimator: Any, info: DatasetInfo) -> None:
    """Give the estimator, and each part of it, the numbers of the columns that its arguments name.

    Parts of a pipeline are left alone: they get columns that the steps before them have made.

    Raises:
        ConfigError: The data has no such column; names the argument.
    """
    if not isinstance(estimator, Pipeline):
        estimator.set_params(**dict(_numbered(estimator, info)))


def _numbered(estimator: Any, info: DatasetInfo) -> Iterator[tuple[str, Any]]:
    arguments = estimator.get_params(deep=True)
    in_pipelines = tuple(f"{key}__" for key, value in arguments.items() if isinstance(value, Pipeline))
    for key, value in arguments.items():
        if key.rpartition("__")[2] not in BY_COLUMN or key.startswith(in_pipelines):
            continue
        if isinstance(value, Mapping):
            signs = {_place(name, key, info): sign for name, sign in value.items()}
            yield key, [signs.get(place, 0) for place in range(len(info.feature_names))]
        elif isinstance(value, list | tuple) and any(isinstance(one, str) for one in value):
            yield key, [_place(name, key, info) for name in value]


def _place(name: Any, where: str, info: DatasetInfo) -> int:
    if name not in info.feature_names:
        known = nearest_or_all(str(name), info.feature_names)
        raise ConfigError(f"trainer.estimator: {where}: {info.name} has no column '{name}'.", known)
    return info.feature_names.index(name)
