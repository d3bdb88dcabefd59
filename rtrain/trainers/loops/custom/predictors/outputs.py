"""What a predictor of the user's returns, held to what can be written and compared with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import PredictionError
from rtrain.trainers.loops.tasks import PLACES
from rtrain.trainers.trained import Predictions

TOLERANCE = 1e-3
"""Of the sum of a row's probabilities; models in half precision are that far off."""
CLASSES_HINT = (
    "Return probabilities of shape (rows, classes), or (rows,) for the second of two classes; or classes as integers "
    "or names."
)


def as_columns(returned: Any, num_rows: int, name: str) -> dict[str, np.ndarray]:
    """Return the columns that a function returned: ``prediction`` alone where it returned an array.

    Args:
        returned: An array, tensor, list or series; or a mapping or table of such columns.
        num_rows: Of the batch.
        name: Of the function, for messages.

    Raises:
        PredictionError: It is nothing of the kind, or has another number of rows.
    """
    if hasattr(returned, "to_pydict"):
        returned = returned.to_pydict()
    is_table = isinstance(returned, Mapping) or (hasattr(returned, "to_dict") and hasattr(returned, "columns"))
    columns = dict(returned.items()) if is_table else {"prediction": returned}
    if not columns:
        raise PredictionError(f"{name} returned no column.", "Return an array, or a dict of arrays by column.")
    found = {}
    for column, values in columns.items():
        what = f"'{column}' in the result of {name}" if is_table else f"the result of {name}"
        found[str(column)] = array = _as_array(values, what)
        if len(array) != num_rows:
            raise PredictionError(f"{what} has {len(array):,} rows; the batch has {num_rows:,}.", "Return one per row.")
    return found


def as_metrics(returned: Any, name: str) -> dict[str, float]:
    """Return the metrics that a function returned.

    Raises:
        PredictionError: They are not a mapping of names to numbers.
    """
    try:
        return {str(key): float(value) for key, value in dict(returned).items()}
    except (TypeError, ValueError) as error:
        raise PredictionError(f"{name} returned {returned!r:.100}.", "Return a dict of numbers by name.") from error


def predictions_of(columns: Mapping[str, np.ndarray], info: DatasetInfo, name: str) -> Predictions:
    """Return what the columns say as the task of the dataset needs it.

    Raises:
        PredictionError: ``prediction`` can't be what the task predicts.
    """
    others = {key: values for key, values in columns.items() if key != "prediction"}
    found = columns.get("prediction")
    if found is None or not info.task or (info.task in PLACES and found.ndim != 3):
        return Predictions(None, columns)
    if info.task in PLACES:
        return Predictions(_numbers(found, name), others)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if info.task == "classification":
        return Predictions(_classes(found, info, name), others)
    if found.ndim != 1:
        raise PredictionError(
            f"{name} returned numbers of shape {found.shape[1:]} per row, which do not fit {info.task} on {info.name}.",
            "Return one number per row, and others in a dict by name.",
        )
    return Predictions(_numbers(found, name), others)


def kind_of(value: Any) -> str:
    """Return what a value is, for messages."""
    return "nothing" if value is None else f"a {type(value).__name__}"


def _as_array(values: Any, what: str) -> np.ndarray:
    if hasattr(values, "detach"):  # a tensor of torch, which may be on a GPU
        values = values.detach().cpu()
        values = values.float().numpy() if "bfloat16" in str(values.dtype) else values.numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise PredictionError(f"{what} can't become an array: {error}", "Return rows of the same shape.") from error
    if array.ndim == 0:
        raise PredictionError(f"{what} is {kind_of(values)}.", "Return an array with one entry per row of the batch.")
    return array


def _numbers(found: np.ndarray, name: str) -> np.ndarray:
    if found.dtype.kind not in "fiub":
        raise PredictionError(f"{name} returned {found.dtype} values, but numbers are needed.")
    return found if found.dtype.kind == "f" else found.astype(np.float64)


def _classes(found: np.ndarray, info: DatasetInfo, name: str) -> np.ndarray:
    """Return (rows, classes) probabilities, or (rows,) int64 classes."""
    num_classes = info.num_classes or 0
    if found.ndim == 2 and found.shape[1] == num_classes and found.dtype.kind == "f":
        return _probabilities(found, name)
    if found.ndim != 1:
        raise PredictionError(
            f"{name} returned {found.dtype} values of shape {found.shape[1:]} per row; {info.name} has {num_classes} "
            "classes.",
            CLASSES_HINT,
        )
    if found.dtype.kind in "OUS":
        return _codes_of(found, info, name)
    if found.dtype.kind == "f" and num_classes == 2:
        return _probabilities(np.stack([1 - found, found], axis=1), name)
    codes = found.astype(np.int64) if found.dtype.kind in "fiub" and np.isfinite(found).all() else np.array([-1])
    if len(codes) != len(found) or (codes != found).any() or (codes < 0).any() or (codes >= num_classes).any():
        raise PredictionError(
            f"{name} returned {_some(found)}, which is not one of the {num_classes} classes.", CLASSES_HINT
        )
    return codes


def _probabilities(found: np.ndarray, name: str) -> np.ndarray:
    sums = found.sum(axis=1, dtype=np.float64)
    wrong = ~((found >= -TOLERANCE).all(axis=1) & (np.abs(sums - 1) <= TOLERANCE))
    if wrong.any():
        row = int(wrong.argmax())
        shown = ", ".join(f"{value:.4g}" for value in found[row][:5])
        raise PredictionError(
            f"{name} returned invalid probabilities: the first wrong row is {shown}, with the sum {sums[row]:.4g}.",
            "For logits, return the softmax (for one output: sigmoid).",
        )
    return found


def _codes_of(found: np.ndarray, info: DatasetInfo, name: str) -> np.ndarray:
    codes = {one: number for number, one in enumerate(info.class_names)}
    texts = [one.decode() if isinstance(one, bytes) else str(one) for one in found.tolist()]
    unknown = next((one for one in texts if one not in codes), None)
    if unknown is not None:
        raise PredictionError(
            f"{name} returned the class '{unknown}'; {info.name} has {', '.join(info.class_names[:10])}.", CLASSES_HINT
        )
    return np.array([codes[one] for one in texts], np.int64)


def _some(found: np.ndarray) -> str:
    return f"{found.dtype} values such as {found.tolist()[:3]}"
