"""Loss and metrics, tried before training: what doesn't fit the data, or would be wrong in silence, is one error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError, first_line
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.sanity_check import tried
from rtrain.trainers.tensorflow.inputs import Inputs
from rtrain.trainers.tensorflow.shapes import is_of_keras, is_single, update
from rtrain.trainers.tensorflow.steps import target_spec, weight_spec, zeros

Parts = Sequence[tuple[Any, Any]]
"""Targets and outputs of some rows at a time."""
SPARSE = "keras.metrics.SparseCategoricalAccuracy, SparseTopKCategoricalAccuracy and SparseCategoricalCrossentropy"
RESHAPE = "y_pred = keras.ops.reshape(y_pred, keras.ops.shape(y_true))"


def try_loss(model: Any, inputs: Inputs, output: Any, info: DatasetInfo, *, own: bool) -> None:
    """Compute the loss of some rows.

    Args:
        model: It is compiled.
        inputs: What makes rows of the dataset those of the model.
        output: What the model gives for some rows.
        info: The dataset.
        own: The loss is none that rtrain has chosen.

    Raises:
        TrainingError: It fails, gives more than one number, broadcasts, or leaves out the weights of rows.
    """
    y, found = _some_rows(output, info)
    x, count = inputs.ready(zeros(inputs.x, len(y))), len(y)
    shapes = f"outputs of shape {tuple(found.shape)} and targets of shape {tuple(y.shape)}"

    def loss(y: Any, found: Any, weight: Any = None) -> Any:
        return model.compute_loss(x=x[: len(y)], y=y, y_pred=found, sample_weight=weight, training=False)

    with tried("trainer.loss", info, shapes):
        value = loss(y, found)
    if tf.rank(value) != 0:
        raise TrainingError(
            f"trainer.loss returns {tuple(value.shape)} numbers for {shapes} of {info.name}, not their mean.",
            to_try("trainer.loss.reduction=sum_over_batch_size"),
        )
    if own:
        _check_broadcast("trainer.loss", lambda parts: float(np.mean([loss(*part) for part in parts])), y, found)
    if own and "weight" in info.columns:
        _check_weights(loss, y, found, tf.reshape(tf.linspace(0.0, 2.0, count), (-1, *weight_spec(info).shape[1:])))


def check_mask(output: Any, num_parts: int) -> None:
    """Refuse outputs with a mask of Keras for a step in parts: the loss divides by what counts in the rows of each.

    Raises:
        TrainingError: Several workers, or backward passes, would train something else than one does.
    """
    if num_parts > 1 and getattr(output, "_keras_mask", None) is not None:
        raise TrainingError(
            "trainer.model gives outputs with a mask: the loss is the mean over unmasked positions, so several "
            "workers, or trainer.accumulate_steps, would train differently than one step of all rows.",
            "Use num_workers=1 and trainer.accumulate_steps=1, or an Embedding without mask_zero.",
        )


def try_metrics(metrics: Mapping[str, Any], output: Any, info: DatasetInfo) -> None:
    """Update the user's metrics with some rows, after which they are new again, with all their variables.

    Raises:
        TrainingError: One of them fails, or broadcasts.
    """
    y, found = _some_rows(output, info)
    weighs = "weight" in info.columns
    weight = tf.ones((len(y), *weight_spec(info).shape[1:])) if weighs else None
    for name, metric in metrics.items():
        if weighs and "int" in str(metric.dtype):
            raise TrainingError(
                f"trainer.metrics.{name} counts in integers, which would truncate the weights of rows.",
                to_try(f"trainer.metrics.{name}.dtype=float32"),
            )
        try:
            update(metric, y, found, weight)
            float(np.mean(metric.result()))
        except Exception as error:  # each metric has its own way to fail
            raise TrainingError(
                f"trainer.metrics.{name} fails with outputs of shape {tuple(found.shape)} and targets of shape "
                f"{tuple(y.shape)} of {info.name}: {type(error).__name__}: {first_line(error)}",
                _hint(found, y, info),
            ) from error
        metric.reset_state()
        if not is_of_keras(metric):
            _check_broadcast(f"trainer.metrics.{name}", partial(_measured, metric), y, found)
        elif is_single(found, y) and getattr(metric, "threshold", 0.5) is None:
            raise TrainingError(
                f"trainer.metrics.{name} uses the largest output of a row as its class, but there is only one output.",
                to_try(f"trainer.metrics.{name}.threshold=0.5"),
            )


def _hint(output: Any, target: Any, info: DatasetInfo) -> str:
    if info.task not in CLASSES:
        return "The target is one number per row: choose a regression metric, e.g. keras.metrics.R2Score."
    if is_single(output, target):
        return "One output is the second of two classes: choose a binary metric, e.g. keras.metrics.AUC."
    return (
        f"Targets are numbers of classes: {SPARSE} take them. Of others, make a subclass that gives them "
        f"keras.ops.one_hot(y_true, {info.num_classes})."
    )


def _some_rows(output: Any, info: DatasetInfo) -> tuple[Any, Any]:
    """Return targets and outputs that differ from row to row, as many as no other axis is long."""
    rng, spec = np.random.default_rng(0), target_spec(info)
    count = min({*range(16, 24)} - {*output.shape[1:], *spec.shape[1:]})
    shape = (count, *spec.shape[1:])
    y = np.arange(math.prod(shape)).reshape(shape) % (info.num_classes or 1)
    y = y if info.task in CLASSES else rng.uniform(0.1, 0.9, shape)
    return tf.constant(y, spec.dtype), tf.constant(rng.uniform(0.1, 0.9, (count, *output.shape[1:])), output.dtype)


def _measured(metric: Any, parts: Parts) -> float:
    for target, output in parts:
        metric.update_state(target, output)
    found = float(np.mean(metric.result()))
    metric.reset_state()
    return found


def _check_broadcast(key: str, measure: Callable[[Parts], float], target: Any, output: Any) -> None:
    """Refuse what compares each target with the outputs of all rows.

    Of (rows,) and (rows, 1) arithmetic makes (rows, rows). Row by row, or with as many axes, there is no such mistake.
    """
    if not (target.shape.rank == 1 and output.shape.rank == 2 and output.shape[1] == 1):
        return
    apart = measure([(target[row : row + 1], output[row : row + 1]) for row in range(len(target))])
    if _is_close(measure([(target, output)]), apart):
        return
    matched = math.nan
    with suppress(Exception):  # with targets of another shape it need not work at all
        matched = measure([(target[:, None], output)])
    if _is_close(matched, apart):
        raise TrainingError(
            f"{key} broadcasts targets of shape (rows,) and outputs of shape (rows, 1) to (rows, rows): it compares "
            "each row with all others.",
            f"Start it with: {RESHAPE}",
        )


def _check_weights(loss: Callable[..., Any], target: Any, output: Any, weight: Any) -> None:
    """Refuse a loss that is the same whatever rows weigh."""
    plain, weighted = float(loss(target, output)), float(loss(target, output, weight))
    rows = range(len(target))
    apart = [float(loss(target[row : row + 1], output[row : row + 1])) for row in rows]
    wanted = float(np.mean(np.ravel(weight) * apart))
    if _is_close(plain, weighted) and not _is_close(plain, wanted):
        raise TrainingError(
            "trainer.loss ignores the weights of rows (dataset.weight): it returns one number for all rows together.",
            "Its call must return one number per row, e.g. the mean over the last axis, and compute_loss must use "
            "sample_weight.",
        )


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-6)
