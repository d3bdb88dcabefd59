"""Predict with the checkpoint of a sklearn run, from its files alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.sklearn.estimator_file.content import load
from rtrain.trainers.sklearn.inputs import Inputs
from rtrain.trainers.sklearn.outputs import LEAST_PROBABILITY, predict_rows
from rtrain.trainers.trained import LoadedCheckpoint, check_shape


class Predictor:
    """A fitted estimator that takes rows as the dataset gives them."""

    least_probability = LEAST_PROBABILITY

    def __init__(self, estimator: Any, info: DatasetInfo) -> None:
        self.info, self.model, self._rows = info, estimator, Inputs(info)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return a probability for each class, or the value of a regression.

        Args:
            x: (rows, *input_shape) of ``DatasetInfo.dtype``, not standardized.

        Returns:
            float32: (rows, num_classes), or (rows,) of ``DatasetInfo.target_dtype`` for a regression. An estimator
            without ``predict_proba`` gives 1 to the class that it predicts.

        Raises:
            ValueError: The rows have another shape than those of training.
        """
        check_shape(x, self.info)
        if len(x) == 0:
            return np.zeros((0, self.info.num_classes) if self.info.num_classes else 0, "float32")
        return predict_rows(self.model, self._rows.ready(x), self.info.num_classes).astype(self.info.target_dtype)


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Load the estimator of a checkpoint.

    Raises:
        CheckpointError: It is missing, can't be loaded, or is a pickle that another account wrote.
    """
    estimator = load(trained.folder, trusted=trained.is_own)
    return Predictor(estimator, trained.info)
