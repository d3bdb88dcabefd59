"""Predict with the checkpoint of a jax run, from its files alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import CheckpointError
from rtrain.trainers.jax import arrays
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.jax.inputs import Inputs
from rtrain.trainers.jax.learner import WEIGHTS
from rtrain.trainers.jax.nets.base import Net, build_net
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.trained import LoadedCheckpoint, check_shape


class Predictor:
    """A trained module that takes rows as the dataset gives them and prepares them as training did."""

    def __init__(self, net: Net, weights_and_state: Any, info: DatasetInfo, device: Any) -> None:
        self.info, self._device = info, device
        self._at = jax.device_put(weights_and_state, device)
        self._inputs = Inputs(info)
        self._outputs = jax.jit(partial(_outputs, net, self._inputs, info.task))

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
        parts = [self._predict(x[start : start + batch_size]) for start in range(0, max(len(x), 1), batch_size)]
        return np.concatenate(parts)

    def _predict(self, x: np.ndarray) -> np.ndarray:
        """Compute some rows, filled up to a power of two so that few sizes are compiled."""
        slots = 1 << max(len(x) - 1, 0).bit_length()
        x = self._inputs.narrow(x)
        rows = np.zeros((slots, *x.shape[1:]), x.dtype)
        rows[: len(x)] = x
        return np.asarray(self._outputs(self._at, jax.device_put(rows, self._device)))[: len(x)]


def _outputs(net: Net, inputs: Inputs, task: str, at: Any, x: Any) -> Any:
    weights, state = at
    output, _ = net.apply(weights, state, inputs.ready(x), jax.random.key(0), training=False)
    output = output.astype(jnp.float32)
    if task in CLASSES:
        return jax.nn.softmax(output, axis=-1)
    return output.squeeze(-1) if output.ndim == 2 else output


def load_predictor(trained: LoadedCheckpoint, device: str = "cpu") -> Predictor:
    """Build the model of a checkpoint with its weights.

    Raises:
        CheckpointError: The weights are not there, or don't fit the model.
    """
    conf: Conf = trained.conf
    if conf.train_function is not None:
        raise CheckpointError(
            f"{trained.folder} was written by {conf.train_function}, a loop of your own; only it knows how to predict."
        )
    info = trained.info
    net = build_net(conf, info, 0, trained.builder)
    inputs = Inputs(info)
    like = net.init(inputs.ready(jnp.asarray(inputs.narrow(np.zeros((1, *info.input_shape), info.dtype)))))
    place = jax.devices("gpu" if device == "cuda" else device)[0]
    return Predictor(net, arrays.load(trained.folder / WEIGHTS, like), info, place)
