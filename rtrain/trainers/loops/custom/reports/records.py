"""The metrics of a checkpoint in its record: flat, as a run records all metrics, and as the loop reported them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from rtrain.runs.nested import flat
from rtrain.trainers.loops.custom.reports.metrics import bounded, plain, scalar

REPORTED = "reported"
"""The field for what a loop reported, where types or nesting tell it from the flat metrics."""


def metrics_as_reported(metrics: Mapping[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """Return metrics as ``ray.train.get_all_reported_checkpoints`` gives them back: nested, with their types.

    Args:
        metrics: What the loop reported. Tuples become lists, arrays with several elements too, objects their text.
        clean: Takes secrets out of a text.
    """
    return {clean(str(name)): _kept(value, clean) for name, value in metrics.items()}


def fields_of(numbers: Mapping[str, float], values: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that hold its metrics.

    Args:
        numbers: The numbers among them by their flat names.
        values: All else.
        own: The same as ``metrics_as_reported`` returns it.
    """
    whole = {name: value for name, value in flat(own, "/") if isinstance(value, int) and not isinstance(value, bool)}
    found: dict[str, Any] = {"metrics": {name: whole.get(name, number) for name, number in numbers.items()}}
    if values:
        found["values"] = dict(values)
    if json.dumps({**found["metrics"], **values}, sort_keys=True) != json.dumps(own, sort_keys=True):
        found[REPORTED] = dict(own)
    return found


def metrics_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of a record as the loop reported them; infinities are NaN."""
    numbers, values = record["metrics"], record.get("values", {})
    reported: dict[str, Any] = _with_nan(record.get(REPORTED, {**numbers, **values}), numbers, "")
    return reported


def _kept(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return metrics_as_reported(value, clean)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.timedelta64):  # NumPy counts it among the integers
        return plain(value, clean)
    if isinstance(value, Integral):
        return int(value)
    number = scalar(value)
    return bounded(plain(value, clean)) if number is None else number


def _with_nan(value: Any, numbers: Mapping[str, Any], name: str) -> Any:
    """Return a value with NaN where JSON has null for a number."""
    if isinstance(value, dict):
        return {key: _with_nan(one, numbers, f"{name}/{key}" if name else key) for key, one in value.items()}
    return math.nan if value is None and name in numbers else value
