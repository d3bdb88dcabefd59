"""The objects in an estimator, at any depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from scipy.interpolate import interp1d

_PLAIN = (str, bytes, int, float, complex, type, np.generic, np.dtype)
_CLOSED = (FunctionType, interp1d)
"""What holds nothing of a file's: isotonic regressions make an interpolation themselves when they are loaded."""


def objects_in(value: Any) -> Iterator[Any]:
    """Yield every object in ``value`` that is neither plain data nor a container, each once and after all it holds."""
    yield from _objects(value, set())


def parts_of(value: Any) -> Iterator[Any]:
    """Yield those of ``objects_in`` that have attributes."""
    for one in objects_in(value):
        if hasattr(one, "__dict__") and not isinstance(one, (partial, *_CLOSED)):
            yield one


def _objects(value: Any, seen: set[int]) -> Iterator[Any]:
    if value is None or isinstance(value, _PLAIN) or id(value) in seen:
        return
    seen.add(id(value))
    for one in _inside(value):
        yield from _objects(one, seen)
    if not isinstance(value, Mapping | list | tuple | set | slice | np.ndarray):
        yield value


def _inside(value: Any) -> list[Any]:
    """Return what a container or an object holds."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords, vars(value)]
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    if isinstance(value, np.ma.MaskedArray):
        return [value.data, value.fill_value, vars(value)]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype == object else []
    if isinstance(value, list | tuple | set):
        return list(value)
    return [] if isinstance(value, _CLOSED) else list(getattr(value, "__dict__", {}).values())
