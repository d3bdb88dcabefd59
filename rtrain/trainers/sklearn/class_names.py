"""Arguments that name classes: a config names them as the data does, the estimator learns numbers from 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sklearn.base import is_classifier

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.datasets.base import DatasetInfo
from rtrain.datasets.labels import class_name
from rtrain.errors import ConfigError

BY_CLASS = ("class_weight", "sampling_strategy")
"""Arguments that may be mappings from classes."""
ONE_CLASS = "pos_label"
GRIDS = ("param_grid", "param_distributions")
"""Arguments of searches that hold values of other arguments."""


def take_class_names(estimator: Any, info: DatasetInfo) -> None:
    """Give the estimator, and each part of it, the numbers of the classes that its arguments name.

    Raises:
        ConfigError: The data has no such class; names the argument.
    """
    if info.task == "classification":
        estimator.set_params(**dict(_numbered(estimator, _Numbers(info))))


def named(argument: str, value: Any, info: DatasetInfo) -> Any:
    """Return the value of an argument, as a search has found it, with the names of classes."""
    names = dict(enumerate(_names(info)))
    if _last(argument) in BY_CLASS and isinstance(value, Mapping):
        return {names.get(number, number): one for number, one in value.items()}
    return names.get(value, value) if _last(argument) == ONE_CLASS else value


class _Numbers:
    """The number of each class, by what a config may call it."""

    def __init__(self, info: DatasetInfo) -> None:
        self._dataset, self._known = info.name, {name: number for number, name in enumerate(_names(info))}

    def of(self, name: Any, where: str) -> int:
        """Return the number of one class."""
        called = class_name(name)
        if called not in self._known:
            raise ConfigError(
                f"trainer.estimator: {where}: {self._dataset} has no class '{called}'.",
                nearest_or_all(called, self._known),
            )
        return self._known[called]

    def of_value(self, argument: str, value: Any) -> Any:
        """Return the value of an argument with numbers in place of names, if it holds any."""
        if _last(argument) in BY_CLASS and isinstance(value, Mapping):
            return {self.of(name, argument): one for name, one in value.items()}
        return self.of(value, argument) if _last(argument) == ONE_CLASS and value is not None else value


def _numbered(estimator: Any, numbers: _Numbers) -> Iterator[tuple[str, Any]]:
    """Yield the arguments, at any depth, that name classes, with numbers in place of names."""
    arguments = estimator.get_params(deep=True)
    for key, value in arguments.items():
        start, _, last = key.rpartition("__")
        if last in GRIDS:
            yield key, _numbered_grid(value, numbers.of_value)
        elif last in (*BY_CLASS, ONE_CLASS) and is_classifier(arguments.get(start, estimator)):
            yield key, numbers.of_value(key, value)


def _numbered_grid(grid: Any, numbered: Callable[[str, Any], Any]) -> Any:
    """Return the values that a search tries with numbers in place of names."""
    if isinstance(grid, list | tuple):
        return [_numbered_grid(one, numbered) for one in grid]
    if not isinstance(grid, Mapping):
        return grid
    return {
        key: [numbered(key, one) for one in values] if isinstance(values, list | tuple) else values
        for key, values in grid.items()
    }


def _names(info: DatasetInfo) -> tuple[str, ...]:
    return info.class_names or tuple(map(str, range(info.num_classes or 0)))


def _last(argument: str) -> str:
    return argument.rpartition("__")[2]
