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
from rtrain.trainers.loops.epochs.predictor import BatchPredictor
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.trained import LoadedCheckpoint


class Predictor(BatchPredictor):
    """A trained module."""

    def __init__(self, net: Net, weights_and_state: Any, info: DatasetInfo, device: Any) -> None:
        super().__init__(info)
        self._device, self._at = device, jax.device_put(weights_and_state, device)
        self._net, self._inputs = net, Inputs(info)
        self._compiled = jax.jit(partial(_outputs, net, self._inputs, info.task))

    def model(self, x: Any) -> Any:
        """Return what the module gives for rows that are standardized, channels last: logits, or values."""
        weights, state = self._at
        return self._net.apply(weights, state, x, jax.random.key(0), training=False)[0]

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Compute some rows, filled up to a power of two so that few sizes are compiled."""
        slots = 1 << max(len(x) - 1, 0).bit_length()
        x = self._inputs.narrow(x)
        rows = np.zeros((slots, *x.shape[1:]), x.dtype)
        rows[: len(x)] = x
        return np.asarray(self._compiled(self._at, jax.device_put(rows, self._device)))[: len(x)]


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
            f"{trained.folder} was written by {conf.train_function}, a custom loop; only its code can predict."
        )
    info = trained.info
    net = build_net(conf, info, 0, trained.builder)
    inputs = Inputs(info)
    like = net.init(inputs.ready(jnp.asarray(inputs.narrow(np.zeros((1, *info.input_shape), info.dtype)))))
    place = jax.devices("gpu" if device == "cuda" else device)[0]
    return Predictor(net, arrays.load(trained.folder / WEIGHTS, like), info, place)
