"""Rows as scikit-learn takes them."""

from __future__ import annotations

import numpy as np

from rtrain.datasets.base import DatasetInfo


class Rows:
    """Makes rows of a dataset into (rows, features): uint8 from 0 to 1, then standardized; NaN stays."""

    def __init__(self, info: DatasetInfo) -> None:
        shape = (1, -1, *[1] * (len(info.input_shape) - 1))
        self._mean = np.asarray(info.mean, "float32").reshape(shape) if info.mean else None
        self._std = np.asarray(info.std, "float32").reshape(shape) if info.mean else None

    def ready(self, x: np.ndarray) -> np.ndarray:
        """Return ``x`` of shape (rows, *input_shape) as (rows, features)."""
        if x.dtype == np.uint8:
            x = x.astype("float32") / 255
        if self._mean is not None and self._std is not None:
            x = (x - self._mean) / self._std
        return x.reshape(len(x), -1)
