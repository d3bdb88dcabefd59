"""Arguments that name columns: configs name them as the data does, estimators get rows whose columns have numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError

BY_COLUMN = ("monotonic_cst", "categorical_features")
"""Arguments that may name columns: a mapping from them, a list of them."""


def take_feature_names(estimator: Any, info: DatasetInfo) -> None:
    """Give the estimator, and each part that gets the data's columns, the numbers of those that its arguments name.

    Other parts are left alone: a step of a pipeline gets what the one before has made, a part of a ColumnTransformer
    the columns chosen for it.

    Raises:
        ConfigError: The data has no such column; names the argument.
    """
    estimator.set_params(**dict(_numbered(estimator, info)))


def take_categories(estimator: Any, info: DatasetInfo) -> None:
    """Tell the estimator, and each part that gets the data's columns, which are categories, unless the config does."""
    places = [place for place, name in enumerate(info.feature_names) if name in info.categories]
    for key, value in list(_with_the_columns(estimator)) if places else ():
        if key.rpartition("__")[2] == "categorical_features" and value == "from_dtype":
            estimator.set_params(**{key: places})


def _numbered(estimator: Any, info: DatasetInfo) -> Iterator[tuple[str, Any]]:
    for key, value in _with_the_columns(estimator):
        if isinstance(value, ColumnTransformer):
            where = f"{key}__transformers".removeprefix("__")
            yield where, [(name, part, _places(columns, where, info)) for name, part, columns in value.transformers]
        elif key.rpartition("__")[2] not in BY_COLUMN:
            continue
        elif isinstance(value, Mapping):
            signs = {_place(name, key, info): sign for name, sign in value.items()}
            yield key, [signs.get(place, 0) for place in range(len(info.feature_names))]
        elif isinstance(value, list | tuple):
            yield key, _places(value, key, info)


def _with_the_columns(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the estimator and its parts and arguments, at any depth, by key, that get the columns of the data."""
    parts = {"": estimator, **estimator.get_params(deep=True)}
    others = tuple(_with_other_columns(parts))
    yield from ((key, value) for key, value in parts.items() if not f"{key}__".startswith(others))


def _with_other_columns(parts: Mapping[str, Any]) -> Iterator[str]:
    """Yield how the keys of parts begin that get other columns than those of the data."""
    for key, part in parts.items():
        inner: list[str] = []
        if isinstance(part, Pipeline):
            inner = [name for name, _ in part.steps[1:]]
        elif isinstance(part, ColumnTransformer):
            inner = [*(name for name, *_ in part.transformers), "remainder"]
        yield from (f"{key}__{name}__".removeprefix("__") for name in inner)


def _places(columns: Any, where: str, info: DatasetInfo) -> Any:
    """Return columns, one or several, with the number of each that is given by its name."""
    if isinstance(columns, list | tuple):
        return [_places(one, where, info) for one in columns]
    return _place(columns, where, info) if isinstance(columns, str) else columns


def _place(name: Any, where: str, info: DatasetInfo) -> int:
    if name not in info.feature_names:
        known = nearest_or_all(str(name), info.feature_names)
        raise ConfigError(f"trainer.estimator: {where}: {info.name} has no column '{name}'.", known)
    return info.feature_names.index(name)
