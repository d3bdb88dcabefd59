"""Build model, optimizer, loss and metrics from their config nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import jax.numpy as jnp
import optax

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.loops.auto import fill_lengths
from rtrain.trainers.loops.tasks import CLASSES

RowLoss = Callable[[Any, Any], Any]
"""Takes outputs and targets, gives a number for each row."""


ACCUMULATE = "Name the optimizer in it, and accumulate gradients by trainer.accumulate_steps."


def build_optimizer(
    conf: Conf, steps: int | None, builder: Builder
) -> tuple[optax.GradientTransformation, Callable[[int], float] | None]:
    """Return the optimizer, and its learning rate by step where its config says it."""
    node = fill_lengths(conf.optimizer, steps, "trainer.optimizer")
    optimizer = builder.build(node, "trainer.optimizer")
    if not isinstance(optimizer, optax.GradientTransformation):
        made = type(optimizer).__name__
        message = f"trainer.optimizer: {node['_target_']} returns a {made}, not an Optax transformation."
        raise ConfigError(message, ACCUMULATE if isinstance(optimizer, optax.MultiSteps) else None)
    rate = node.get("learning_rate")
    if isinstance(rate, Mapping):
        schedule = builder.build(rate, "trainer.optimizer.learning_rate")
        return optimizer, lambda step: float(schedule(step))
    return optimizer, None if rate is None else lambda step: float(rate)


def build_loss(conf: Conf, info: DatasetInfo, builder: Builder) -> RowLoss:
    """Return the loss of each row: the user's, or the usual one of the task."""
    if conf.loss is not None:
        return rowwise(builder.build({**conf.loss, "_partial_": True}, "trainer.loss"))
    return rowwise(optax.softmax_cross_entropy_with_integer_labels if info.task in CLASSES else squared_error)


def build_metrics(conf: Conf, info: DatasetInfo, builder: Builder) -> dict[str, RowLoss]:
    """Return the metrics that are measured in addition to the loss, by name."""
    usual = {"accuracy": is_right} if info.task in CLASSES else {"mae": absolute_error, "mse": squared_error}
    own = {
        name: builder.build({**node, "_partial_": True}, f"trainer.metrics.{name}")
        for name, node in conf.metrics.items()
    }
    return {name: rowwise(function) for name, function in {**usual, **own}.items()}


def rowwise(function: Callable[[Any, Any], Any]) -> RowLoss:
    """Return ``function`` with the mean taken over all axes but the first: the places of one row share its weight."""

    @wraps(function)
    def of_rows(output: Any, target: Any) -> Any:
        values = function(output, target)
        return values.reshape(values.shape[0], -1).mean(axis=1)

    return of_rows


def squared_error(output: Any, target: Any) -> Any:
    """Return the squared error of each value."""
    return jnp.square(output - target)


def absolute_error(output: Any, target: Any) -> Any:
    """Return the absolute error of each value."""
    return jnp.abs(output - target)


def is_right(output: Any, target: Any) -> Any:
    """Return 1 where the largest output is that of the target."""
    return (output.argmax(-1) == target).astype(jnp.float32)
