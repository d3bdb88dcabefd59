"""Predict some rows at a time: what the predictors of networks share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.trained import check_shape


class BatchPredictor(ABC):
    """A trained model that takes rows as the dataset gives them and prepares them as training did.

    Args:
        info: The dataset that it was trained on.
    """

    def __init__(self, info: DatasetInfo) -> None:
        self.info = info

    def predict(self, x: np.ndarray, batch_size: int = 1024) -> np.ndarray:
        """Return a probability for each class, or the value of a regression.

        Args:
            x: (rows, *input_shape) of ``DatasetInfo.dtype``, not standardized: as the dataset has them.
            batch_size: Number of rows that are computed together.

        Returns:
            float32: (rows, num_classes), or (rows,) for a regression; (rows, length, num_classes) where each place of a
            sequence is predicted.

        Raises:
            ValueError: The rows have another shape than those of training.
        """
        self.check(x)
        starts = range(0, max(len(x), 1), batch_size)
        return np.concatenate([self.outputs(x[start : start + batch_size]) for start in starts])

    def check(self, x: np.ndarray) -> None:
        """Raise a ValueError if rows have another shape than those of training."""
        check_shape(x, self.info)

    @abstractmethod
    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Return what ``predict`` does, for rows that are computed together; there may be none."""
