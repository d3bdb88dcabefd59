"""Predict with trees: what the predictors of boosted trees share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.boosting.margins import probabilities_of_margins
from rtrain.trainers.loops.ranking_metrics import Ranking
from rtrain.trainers.trained import check_shape


class TreesPredictor(ABC):
    """Boosted trees that take rows as the dataset gives them.

    Args:
        info: The dataset that they were grown on.
        margins: Predictions are the sums of trees (margins), because the library transforms them for another objective.
        ranking: What the run measured, if it is one.
    """

    quantiles: tuple[float, ...] = ()
    """Those of the label that it predicts: (rows,) values of one, or (rows, quantiles); empty: none."""

    def __init__(self, info: DatasetInfo, *, margins: bool, ranking: Ranking | None = None) -> None:
        self.info, self._margins, self.ranking = info, margins, ranking or Ranking()

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return a probability for each class, or the value of a regression or ranking.

        Args:
            x: (rows, *input_shape); NaN is a missing value.

        Returns:
            float32: (rows, num_classes), or (rows,).

        Raises:
            ValueError: The rows have another shape than those of training.
        """
        return self._checked(x, None)

    def predict_from(self, x: np.ndarray, base_margin: np.ndarray) -> np.ndarray:
        """Return what ``predict`` does, for rows that bring scores to start from: (rows,) or (rows, classes)."""
        return self._checked(x, base_margin)

    @abstractmethod
    def outputs(self, x: np.ndarray, base_margin: np.ndarray | None) -> np.ndarray:
        """Return what the library predicts for rows: values, margins, or the probability of the second class alone."""

    def _checked(self, x: np.ndarray, base_margin: np.ndarray | None) -> np.ndarray:
        check_shape(x, self.info)
        found = np.asarray(self.outputs(x, base_margin))
        if self.info.task == "classification":
            found = self._probabilities(found)
        return found.astype(np.float32)

    def _probabilities(self, found: np.ndarray) -> np.ndarray:
        if self._margins:
            return probabilities_of_margins(found)
        return found if found.ndim == 2 else np.stack([1 - found, found], axis=1)
