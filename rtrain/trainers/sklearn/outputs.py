"""The outputs of a fitted estimator for rows, in the form that all trainers share."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtrain.trainers.loops.tasks import TINY

LEAST_PROBABILITY = float(np.finfo("float64").eps)
"""What smaller ones count as in the logarithmic loss, as in ``sklearn.metrics.log_loss``: the loss stays finite."""


def predict_rows(estimator: Any, x: np.ndarray, num_classes: int | None) -> np.ndarray:
    """Return float64 probabilities (rows, num_classes), or the values of a regression, (rows,).

    An estimator without probabilities gives 1 to the class that it predicts. A class that was not in the training data
    has the probability 0.
    """
    if num_classes is None:
        return np.asarray(estimator.predict(x), "float64").reshape(len(x))
    found = np.zeros((len(x), num_classes))
    if has_probabilities(estimator):
        found[:, np.asarray(estimator.classes_, int)] = estimator.predict_proba(x)
    else:
        found[np.arange(len(x)), np.asarray(estimator.predict(x), int)] = 1
    return found


def has_probabilities(estimator: Any) -> bool:
    """Return whether a classifier gives probabilities, and predicts the likeliest class: some decide in another way."""
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
    from sklearn.neighbors import NearestCentroid

    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    decides_otherwise = isinstance(last, FixedThresholdClassifier | TunedThresholdClassifierCV | NearestCentroid)
    return hasattr(estimator, "predict_proba") and not decides_otherwise


class Sums:
    """The metrics of a split, gathered batch by batch: accuracy and logarithmic loss, or errors."""

    def __init__(self, estimator: Any, num_classes: int | None) -> None:
        self._estimator, self._num_classes = estimator, num_classes
        self._weight = 0.0
        self._totals: dict[str, float] = {}

    def add(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Take in rows with what they should be, and how much they count."""
        output = predict_rows(self._estimator, x, self._num_classes)
        counts = np.ones(len(y)) if weight is None else weight.astype("float64")
        self._weight += float(counts.sum())
        for name, values in self._of_rows(output, y).items():
            self._totals[name] = self._totals.get(name, 0.0) + float(values @ counts)

    def metrics(self) -> dict[str, float]:
        """Return the mean of each metric over all rows, by their weights."""
        return {name: total / max(self._weight, TINY) for name, total in self._totals.items()}

    def _of_rows(self, output: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        if self._num_classes is None:
            error = output - y
            return {"loss": error**2, "mae": np.abs(error), "mse": error**2}
        found = {"accuracy": output.argmax(1) == y}
        if has_probabilities(self._estimator):
            found["loss"] = -np.log(np.clip(output[np.arange(len(y)), y], LEAST_PROBABILITY, 1))
        return found
