"""Predict with the checkpoint of a tensorflow run, from its files alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.epochs.predictor import BatchPredictor
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.tensorflow.build import build_loss, build_model, gives_logits
from rtrain.trainers.tensorflow.checkpoint.weights import load_weights
from rtrain.trainers.tensorflow.inputs import Inputs
from rtrain.trainers.tensorflow.outputs import probabilities
from rtrain.trainers.tensorflow.steps import call
from rtrain.trainers.trained import LoadedCheckpoint


class Predictor(BatchPredictor):
    """A trained model."""

    def __init__(self, model: Any, info: DatasetInfo, is_logits: bool, device: str) -> None:
        super().__init__(info)
        self.model, self._device, inputs = model, device, Inputs(info)

        def outputs(x: Any) -> Any:
            output = tf.cast(call(model, inputs.ready(x), training=False), tf.float32)
            if info.task in CLASSES:
                return probabilities(output, is_logits)
            return tf.reshape(output, (-1,))

        self._compiled = tf.function(outputs, input_signature=[inputs.x])

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Compute some rows on the device."""
        with tf.device(self._device):
            return np.asarray(self._compiled(x))


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Build the model of a checkpoint with its weights.

    Raises:
        CheckpointError: The weights are not there, or don't fit the model.
    """
    model = build_model(trained.conf, trained.info, trained.builder)
    load_weights(model, trained.folder)
    loss = build_loss(trained.conf, model, trained.info, trained.builder)
    return Predictor(model, trained.info, gives_logits(loss, model), "GPU:0" if device == "cuda" else "CPU:0")
