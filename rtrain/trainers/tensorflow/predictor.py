"""Predict with the checkpoint of a tensorflow run, from its files alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.tensorflow.build import build_loss, build_model, gives_logits
from rtrain.trainers.tensorflow.checkpoint.weights import load_weights
from rtrain.trainers.tensorflow.inputs import Inputs
from rtrain.trainers.tensorflow.outputs import probabilities
from rtrain.trainers.tensorflow.steps import call
from rtrain.trainers.trained import LoadedCheckpoint, check_shape


class Predictor:
    """A trained model that takes rows as the dataset gives them and prepares them as training did."""

    def __init__(self, model: Any, info: DatasetInfo, is_logits: bool, device: str) -> None:
        self.info, self._device = info, device
        inputs = Inputs(info)

        def outputs(x: Any) -> Any:
            output = tf.cast(call(model, inputs.ready(x), training=False), tf.float32)
            if info.task in CLASSES:
                return probabilities(output, is_logits)
            return tf.reshape(output, (-1,))

        self._outputs = tf.function(outputs, input_signature=[inputs.x])

    def predict(self, x: np.ndarray, batch_size: int = 1024) -> np.ndarray:
        """Return a probability for each class, or the value of a regression.

        Args:
            x: (rows, *input_shape) of ``DatasetInfo.dtype``, not standardized.
            batch_size: Rows that are computed at once.

        Returns:
            float32: (rows, num_classes), or (rows,) for a regression; (rows, length, num_classes) where each place of a
            sequence is predicted.

        Raises:
            ValueError: The rows have another shape than those of training.
        """
        check_shape(x, self.info)
        with tf.device(self._device):
            starts = range(0, max(len(x), 1), batch_size)
            return np.concatenate([self._outputs(x[start : start + batch_size]).numpy() for start in starts])


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Build the model of a checkpoint with its weights.

    Raises:
        CheckpointError: The weights are not there, or don't fit the model.
    """
    model = build_model(trained.conf, trained.info, trained.builder)
    load_weights(model, trained.folder)
    loss = build_loss(trained.conf, model, trained.info, trained.builder)
    return Predictor(model, trained.info, gives_logits(loss, model), "GPU:0" if device == "cuda" else "CPU:0")
