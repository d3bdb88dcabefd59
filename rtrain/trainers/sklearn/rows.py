"""Rows as scikit-learn takes them."""

from __future__ import annotations

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.from_dataset import standardization


class Rows:
    """Makes rows of a dataset into (rows, features): uint8 from 0 to 1, then standardized; NaN stays."""

    def __init__(self, info: DatasetInfo) -> None:
        self._scale = standardization(info)

    def ready(self, x: np.ndarray) -> np.ndarray:
        """Return ``x`` of shape (rows, *input_shape) as (rows, features)."""
        if x.dtype == np.uint8:
            x = x.astype("float32") / 255
        if self._scale is not None:
            mean, std = self._scale
            x = (x - mean) / std
        return x.reshape(len(x), -1)
