"""Rows as a Keras model takes them: float32, standardized, channels last."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.auto import standardization, standardized


class Inputs:
    """Makes rows of a dataset into what a model takes, inside of the graph."""

    def __init__(self, info: DatasetInfo) -> None:
        self._scale = standardization(info)
        self._is_image = len(info.input_shape) == 3
        self.x = tf.TensorSpec((None, *info.input_shape), tf.as_dtype(info.dtype))
        """What ``ready`` takes."""

    def ready(self, x: Any) -> Any:
        """Return tokens unchanged, other rows as float32: uint8 from 0 to 1, standardized, (h, w, c) for images."""
        if x.dtype == tf.int64:
            return x
        if x.dtype != tf.float64:
            x = tf.cast(x, tf.float32) / 255 if x.dtype == tf.uint8 else tf.cast(x, tf.float32)
        x = tf.cast(standardized(x, self._scale), tf.float32)
        return tf.transpose(x, (0, 2, 3, 1)) if self._is_image else x
