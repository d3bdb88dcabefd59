"""Rows as scikit-learn takes them."""

from __future__ import annotations

import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.auto import standardization, standardized


class Inputs:
    """Makes rows of a dataset into (rows, features): uint8 from 0 to 1, then standardized; NaN stays."""

    def __init__(self, info: DatasetInfo) -> None:
        self._scale = standardization(info)
        self._dtype = info.target_dtype

    def ready(self, x: np.ndarray) -> np.ndarray:
        """Return ``x`` of shape (rows, *input_shape) as (rows, features)."""
        if x.dtype == np.uint8:
            x = x.astype("float32") / 255
        if self._dtype == "float64":  # estimators turn targets into what the rows are
            x = x.astype("float64", copy=False)
        x = standardized(x, self._scale)
        return x.reshape(len(x), -1)
