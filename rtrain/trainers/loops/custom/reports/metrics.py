"""What a loop reports, as JSON can hold it: numbers by name, and separately everything else."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from rtrain.errors import TrainingError
from rtrain.runs.nested import flat

MAX_VALUES = 1000
"""Numbers of an array that are written; of a larger one, its type, shape and dtype are."""
MAX_CHARACTERS = 10_000
"""Of a text, or of the JSON of a list; a line of ``events.jsonl`` has limits, too."""


def split_metrics(
    metrics: Mapping[str, Any], clean: Callable[[str], str] = str
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the numbers among the metrics, and the values of every other type.

    Mappings inside are flattened as Ray Tune does it: ``{"val": {"loss": 1}}`` becomes ``val/loss``. Arrays and tensors
    with one element are numbers, and so are booleans (0 and 1).

    Args:
        metrics: What ``ray.train.report`` was given.
        clean: Takes secrets out of a text.

    Returns:
        Floats by name; texts, lists, None and the text of any other object by name.

    Raises:
        TrainingError: They are not a mapping, are nested endlessly, hold a value that can't be read, or two of a name.
    """
    if not isinstance(metrics, Mapping):
        raise TrainingError(
            f"ray.train.report takes a dict of metrics, not {type(metrics).__name__}.",
            'Report names and values: ray.train.report({"loss": loss}). Without metrics: ray.train.report({}, ...).',
        )
    try:
        return _split(metrics, clean)
    except RecursionError:
        raise TrainingError(
            "ray.train.report: the metrics are nested too deeply, or contain themselves.",
            "Report numbers, strings, and dicts and lists of these.",
        ) from None


def _split(metrics: Mapping[str, Any], clean: Callable[[str], str]) -> tuple[dict[str, float], dict[str, Any]]:
    numbers: dict[str, float] = {}
    values: dict[str, Any] = {}
    seen: set[str] = set()
    for spelled, value in flat(metrics, "/"):  # as Ray Tune names them: val/loss
        name = clean(spelled)
        if spelled in seen:
            raise TrainingError(f"ray.train.report: two of the metrics are named {name}.", "Rename one of them.")
        seen.add(spelled)
        try:
            number = scalar(value)
            if number is None:
                values[name] = bounded(plain(value, clean))
            else:
                numbers[name] = number
        except RecursionError:
            raise
        except Exception as error:  # the text of an object is the user's code
            raise TrainingError(
                f"ray.train.report: the value of {name}, a {type(value).__name__}, can't be read: {clean(str(error))}",
                "Report a number, or a tensor that has data.",
            ) from error
    return numbers, values


def bounded(value: Any) -> Any:
    """Return a value, or how long it is if that is too long for a line."""
    size = len(json.dumps(value, default=str))
    return value if size <= 2 * MAX_CHARACTERS else f"{type(value).__name__} of {size:,} characters as JSON"


def whole_number(value: float | None) -> int | None:
    """Return a metric such as ``step`` or ``epoch`` as an integer; None if it is not a whole number."""
    return int(value) if value is not None and math.isfinite(value) and value == int(value) else None


def scalar(value: Any) -> float | None:
    """Return a scalar of any library as a float; None if it is none."""
    try:
        if isinstance(value, Decimal) and value.is_nan():  # a signaling one as well
            return math.nan
        if isinstance(value, Real | Decimal):
            return float(value)
        if hasattr(value, "item") and _num_values(value) == 1 and not _is_masked(value):
            inner = value.item()
            return float(inner) if isinstance(inner, Real) else None
    except (OverflowError, TypeError, ValueError):  # an integer beyond all floats
        return None
    return None


def _num_values(value: Any) -> int:
    """Return the number of elements of an array or a tensor; 0 if it is neither."""
    shape = getattr(value, "shape", None)
    return 0 if shape is None else math.prod(int(length) for length in shape)


def _is_masked(value: Any) -> bool:
    """Return whether a masked array of NumPy leaves its only element out: there is no number then."""
    return isinstance(value, np.ma.MaskedArray) and bool(np.any(value.mask))


def plain(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a value as JSON can hold it; the text of what it can't."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean(value)[:MAX_CHARACTERS]
    if isinstance(value, Mapping):
        return {clean(str(name)): _member(one, clean) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_member(one, clean) for one in value]
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        if _num_values(value) <= MAX_VALUES:
            return plain(value.tolist(), clean)
        return f"{type(value).__name__} {tuple(value.shape)} {getattr(value, 'dtype', '')}".rstrip()
    return clean(str(value))[:MAX_CHARACTERS]


def _member(value: Any, clean: Callable[[str], str]) -> Any:
    number = None if isinstance(value, bool | int) else scalar(value)
    return plain(value, clean) if number is None else number
