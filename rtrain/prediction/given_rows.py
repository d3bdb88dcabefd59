"""Rows that a program gives to a loaded model, as its predictor takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rtrain.datasets.base import DatasetInfo, objects
from rtrain.errors import PredictionError, first_line
from rtrain.prediction.refused_values import check_values

PREPARED = (
    "Its rows have a number for each of checkpoint.info.feature_names, in the data's own units: predict standardizes "
    "them.\nOf a file, rtrain.predict(RUN, 'out.parquet', ['dataset.path=FILE']) prepares the rows as in training."
)


def columns_of(x: Any) -> dict[str, np.ndarray] | None:
    """Return the columns of a table by name; None for anything else, and for columns without names."""
    names = getattr(x, "column_names", None) or getattr(x, "columns", None)
    if names is None or isinstance(x, Mapping) or not all(isinstance(one, str) for one in names):
        return None
    return {name: np.asarray(x[name]) for name in names}


def as_rows(x: Any, info: DatasetInfo, *, takes_missing: bool) -> Any:
    """Return rows of numbers as an array of the type that a model was trained with; texts as they are, in an array.

    Args:
        x: What a program gives.
        info: The dataset of training.
        takes_missing: Whether the model takes NaN for a missing value.

    Raises:
        PredictionError: It is not an array of rows, has infinite values, or lacks some that the model needs.
    """
    for what, is_it in (("a table", columns_of(x) is not None), ("a dict of columns", isinstance(x, Mapping))):
        if is_it:
            raise PredictionError(f"this model takes an array of prepared rows, not {what}.", PREPARED)
    if info.dtype == "object" or info.original_sizes:
        if isinstance(x, str):
            raise PredictionError("x is one text: this model takes a list of texts.", "For one of them: predict([x])")
        return objects(x) if isinstance(x, list | tuple) else x
    rows = _numbers(x, info)
    is_flat = rows.ndim == 2 and rows.shape[1] == math.prod(info.input_shape)  # as boosted trees take images
    if rows.ndim <= len(info.input_shape) and not is_flat:
        wanted = ", ".join(map(str, ("rows", *info.input_shape)))
        raise PredictionError(f"x has the shape {rows.shape}: this model takes rows, ({wanted}).", _how(rows, info))
    advice = " checkpoint.info.mean has the means of training." if info.mean else ""
    check_values(rows, info, "x[{}]".format, lambda: takes_missing, advice)
    return rows


def _how(rows: np.ndarray, info: DatasetInfo) -> str:
    """Return how to give numbers that lack a dimension."""
    if rows.shape == info.input_shape:
        return "For a single row: predict([x])"
    if rows.ndim and rows.size and rows[0].size == math.prod(info.input_shape):
        return f"Each row lacks a dimension: predict(x.reshape{(-1, *info.input_shape)})"
    return "Give a list of rows."


def _numbers(x: Any, info: DatasetInfo) -> np.ndarray:
    try:
        rows = np.asarray(x)
    except ValueError as error:
        raise PredictionError("the rows of x differ in length.", PREPARED) from error
    if rows.dtype.kind == "O" and not any(isinstance(one, str | bytes) for one in rows.flat):
        rows = _plain(rows, info)
    if rows.dtype.kind not in "biuf":
        raise PredictionError(
            f"x contains {'texts' if rows.dtype.kind in 'USO' else rows.dtype}: this model takes numbers.",
            "A category is its place in checkpoint.info.categories[NAME]." if info.categories else None,
        )
    return rows.astype(info.dtype, copy=False) if np.dtype(info.dtype).kind == "f" else rows


def _plain(rows: np.ndarray, info: DatasetInfo) -> np.ndarray:
    """Return objects as numbers, None as NaN."""
    try:
        return rows.astype("float64" if np.dtype(info.dtype).kind == "f" else info.dtype)
    except (TypeError, ValueError) as error:
        raise PredictionError(f"x contains more than numbers: {first_line(error)}.") from error
