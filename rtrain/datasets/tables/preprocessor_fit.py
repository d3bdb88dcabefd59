"""What preprocessors learn from the rows of train, found without a cluster and kept as plain data.

``ray.data.preprocessors`` learn from a ray.data.Dataset alone, which needs a cluster. The statistics here are theirs,
over a data frame instead; but quantiles are exact, where theirs are estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from rtrain.errors import DatasetError

Statistics = dict[str, Any]
"""By the keys of ``stats_`` of Ray's preprocessors: numbers, lists of values in order, or pairs of token and count."""
NEEDS_LIST = ("MultiHotEncoder",)
NEEDS_VALUES = ("OneHotEncoder", "OrdinalEncoder")


def learned(kind: str, arguments: Mapping[str, Any], frame: pd.DataFrame) -> Statistics:
    """Return what a preprocessor learns from the rows in ``frame``; empty if it learns nothing.

    Args:
        kind: Its name in ``ray.data.preprocessors``.
        arguments: Those of its constructor.
        frame: Columns of float64, of text, or of lists; missing values are NaN or None.

    Raises:
        DatasetError: A column has no value, or not the kind of values that the preprocessor needs.
    """
    find = _FINDERS.get(kind)
    if find is None or arguments.get("strategy") == "constant":
        return {}
    found: Statistics = {}
    for column in arguments["columns"]:
        values = frame[column].dropna()
        if values.empty:
            raise DatasetError(f"feature '{column}' has no value in the train split.", "Leave it out.")
        _check_kind(kind, arguments, column, values)
        found |= find(column, values, arguments)
    return found


def as_ray(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return statistics as Ray's preprocessors hold them in ``stats_``."""
    shapes: dict[str, Callable[[Any], Any]] = {
        "unique_values": lambda values: {value: code for code, value in enumerate(values)},
        "token_counts": lambda pairs: Counter(dict(pairs)),
    }
    return {key: shapes.get(key.partition("(")[0], lambda value: value)(value) for key, value in statistics.items()}


def part_names(kind: str, arguments: Mapping[str, Any], statistics: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return what the parts of each column that becomes a vector are called, where its statistics tell."""
    found = {}
    for column, output in zip(arguments["columns"], arguments.get("output_columns", arguments["columns"]), strict=True):
        if kind in ("OneHotEncoder", "MultiHotEncoder"):
            found[output] = tuple(f"{output}={_shown(value)}" for value in statistics[f"unique_values({column})"])
        elif kind == "CountVectorizer":
            found[output] = tuple(f"{output}={token}" for token, _ in statistics[f"token_counts({column})"])
    return found


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check_kind(kind: str, arguments: Mapping[str, Any], column: str, values: pd.Series[Any]) -> None:
    is_list = not isinstance(values.iloc[0], str | float | int) and hasattr(values.iloc[0], "__len__")
    is_number = values.dtype.kind in "fiub"
    if kind in NEEDS_LIST:
        wanted, right = "lists", is_list
    elif kind in NEEDS_VALUES or arguments.get("strategy") == "most_frequent":
        wanted, right = "text or numbers", not is_list
    elif kind == "CountVectorizer":
        wanted, right = "text", not is_list and not is_number
    else:
        wanted, right = "numbers", is_number
    if not right:
        holds = "numbers" if is_number else "lists" if is_list else "text"
        raise DatasetError(f"needs {wanted}, but '{column}' contains {holds}.")


def _standard(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    return {f"mean({column})": float(values.mean()), f"std({column})": float(values.std(ddof=0))}


def _range(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    return {f"min({column})": float(values.min()), f"max({column})": float(values.max())}


def _largest(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    return {f"abs_max({column})": float(values.abs().max())}


def _quantiles(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    low, high = arguments.get("quantile_range", (0.25, 0.75))
    shares = {"low_quantile": low, "median": 0.5, "high_quantile": high}
    return {f"{name}({column})": float(values.quantile(share)) for name, share in shares.items()}


def _usual(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    if arguments.get("strategy", "mean") == "mean":
        return {f"mean({column})": float(values.mean())}
    return {f"most_frequent({column})": _by_count(Counter(values.tolist()))[0][0]}


def _values(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    counts = _by_count(Counter(values.tolist()))
    most = arguments.get("max_categories", {}).get(column)
    return {f"unique_values({column})": sorted(value for value, _ in counts[:most])}


def _members(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    members = chain.from_iterable(np.asarray(one).tolist() for one in values)
    return _values(column, pd.Series(list(members)), arguments)


def _tokens(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    counts = _by_count(Counter(chain.from_iterable(text.split(" ") for text in values)))
    return {f"token_counts({column})": [list(pair) for pair in counts[: arguments.get("max_features")]]}


def _edges(column: str, values: pd.Series[Any], arguments: Mapping[str, Any]) -> Statistics:
    bins = arguments["bins"]
    number = bins[column] if isinstance(bins, Mapping) else bins
    _, edges = pd.cut(values, number, right=arguments.get("right", True), retbins=True)
    return {column: edges.tolist()}


def _by_count(counts: Counter[Any]) -> list[tuple[Any, int]]:
    """Return values and their counts, the most frequent first and equally frequent ones in their own order."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


_FINDERS: Mapping[str, Callable[[str, Any, Mapping[str, Any]], Statistics]] = {
    "CountVectorizer": _tokens,
    "MaxAbsScaler": _largest,
    "MinMaxScaler": _range,
    "MultiHotEncoder": _members,
    "OneHotEncoder": _values,
    "OrdinalEncoder": _values,
    "RobustScaler": _quantiles,
    "SimpleImputer": _usual,
    "StandardScaler": _standard,
    "UniformKBinsDiscretizer": _edges,
}
