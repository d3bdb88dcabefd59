"""Predictions of a custom loop next to a label column that the user names. Their kind is inferred from the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import PredictionError
from rtrain.prediction.raw_columns import UNKNOWN
from rtrain.trainers.loops.custom.predictors.outputs import predictions_of


@dataclass(frozen=True)
class Labelled:
    """Predictions of some rows with their labels, unchanged."""

    predicted: np.ndarray
    """(rows,) or (rows, classes)."""
    labels: np.ndarray
    """(rows,) numbers or texts."""
    own: Mapping[str, float] = field(default_factory=dict)
    """Metrics that the predictor measures itself, means over these rows."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.labels)


def coded(parts: Sequence[Labelled]) -> tuple[DatasetInfo, np.ndarray, np.ndarray]:
    """Return the task that predictions and labels show, and both as this task has them.

    Texts, booleans and whole numbers on both sides are classes, and so are labels 0 and 1 with predictions in
    between, or 0 to n - 1 with n columns of probabilities. All other numbers are a regression.

    Raises:
        PredictionError: They can't be compared.
    """
    try:
        predicted = np.concatenate([one.predicted for one in parts])
    except ValueError as error:
        raise PredictionError(f"the predictor returned batches of different shapes: {error}") from error
    labels = np.concatenate([one.labels for one in parts])
    predicted = predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted
    names = _classes(predicted, labels)
    if names is None:
        info = replace(UNKNOWN, task="regression")
        scores, y = predicted, labels.astype(np.float64)
    else:
        info = replace(UNKNOWN, task="classification", class_names=names, num_classes=len(names))
        scores = predicted if predicted.dtype.kind == "f" else np.array(_texts(predicted))
        codes = {name: code for code, name in enumerate(names)}
        y = np.array([codes[one] for one in _texts(labels)], np.int64)
    found = predictions_of({"prediction": scores}, info, "the predictor").scores
    assert found is not None
    return info, found, y


def _classes(predicted: np.ndarray, labels: np.ndarray) -> tuple[str, ...] | None:
    """Return the names of the classes; None if the numbers are not classes.

    Raises:
        PredictionError: Nothing says which class a probability or a number is of.
    """
    of_numbers = predicted.dtype.kind == "f"
    if labels.dtype.kind == "f" and (labels == np.floor(labels)).all():  # whole numbers, some of them missing
        labels = labels.astype(np.int64)
    whole = labels.dtype.kind in "iu"
    if of_numbers and predicted.ndim == 2:
        if not whole or labels.min() < 0 or labels.max() >= predicted.shape[1]:
            raise _no_class(f"{predicted.shape[1]} columns of probabilities", labels)
        return tuple(map(str, range(predicted.shape[1])))
    if of_numbers:
        if whole and np.isin(labels, (0, 1)).all() and ((predicted >= 0) & (predicted <= 1)).all():
            return ("0", "1")
        if labels.dtype.kind in "iuf":
            return None
        raise _no_class("numbers", labels)
    if predicted.dtype.kind in "iu" and labels.dtype.kind == "f":
        return None
    there, named = set(_texts(labels)), set(_texts(predicted))
    if not there & named and "numbers" not in (_kind(predicted), _kind(labels)):
        raise PredictionError(
            f"the predictor returned {_some(predicted)}, none of which is a label: labels are {_some(labels)}.",
            "Return classes by the names of the labels.",
        )
    if not there & named:
        raise _no_class(_some(predicted), labels)
    return tuple(sorted(there | named))


def _texts(values: np.ndarray) -> list[str]:
    """Return classes by their names: whole numbers as such, whatever type they have."""
    if values.dtype.kind in "bf":
        values = values.astype(np.int64)
    return [one.decode() if isinstance(one, bytes) else str(one) for one in values.tolist()]


def _kind(values: np.ndarray) -> str:
    return "numbers" if values.dtype.kind in "biuf" else "texts"


def _some(values: np.ndarray) -> str:
    return ", ".join(map(repr, list(dict.fromkeys(values.tolist()))[:3]))


def _no_class(what: str, labels: np.ndarray) -> PredictionError:
    return PredictionError(
        f"the predictor returned {what}, but labels are {_some(labels)}: the order of the classes is unknown.",
        "Return classes by name, or add a method metrics(batch) to what trainer.predictor returns.",
    )
