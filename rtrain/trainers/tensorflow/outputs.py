"""What a model gives: checked against what the data needs, counted, and as probabilities."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.sanity_check import WrongOutputsError


def check_output(output: Any, target: Any, info: DatasetInfo) -> None:
    """Find a model that doesn't fit the data, where the loss would give a riddle or broadcast in silence.

    Raises:
        TrainingError: It gives too few numbers, or something else than one tensor.
    """
    if not tf.is_tensor(output):
        raise TrainingError(
            f"the model returns a {type(output).__name__}, but the loss needs one tensor.",
            "Set trainer.model to a model with one output.",
        )
    if output.shape[:1] != target.shape[:1]:
        message = f"the model returns {tuple(output.shape)} for {len(target)} rows."
        raise TrainingError(message, "Set trainer.model to a model for such rows.")
    last = output.shape[-1] if output.shape.rank == target.shape.rank + 1 else 1
    wanted = {info.num_classes if info.task in CLASSES else 1}
    if info.num_classes == 2:
        wanted.add(1)
    if output.shape.rank not in (target.shape.rank, target.shape.rank + 1) or last not in wanted:
        raise WrongOutputsError(output.shape[1:], info, "Set the model's number of outputs to auto.")


def row_metrics(output: Any, target: Any, is_logits: bool, task: str) -> list[Any]:
    """Return what is measured for each row in addition to the loss: right answers, or absolute and squared errors."""
    if task in CLASSES:
        right = tf.cast(_chosen(output, target, is_logits) == target, tf.float64)
        return [tf.reduce_mean(tf.reshape(right, (tf.shape(right)[0], -1)), axis=1)]
    error = tf.cast(tf.reshape(output, tf.shape(target)), tf.float64) - tf.cast(target, tf.float64)
    return [tf.abs(error), tf.square(error)]


def probabilities(output: Any, is_logits: bool) -> Any:
    """Return (rows, ..., classes) probabilities; of a single output, those of both classes."""
    if output.shape[-1] == 1:
        second = tf.sigmoid(output) if is_logits else output
        return tf.concat([1 - second, second], axis=-1)
    return tf.nn.softmax(output) if is_logits else output


def _chosen(output: Any, target: Any, is_logits: bool) -> Any:
    if output.shape.rank == target.shape.rank:
        output = output[..., tf.newaxis]
    if output.shape[-1] == 1:
        return tf.cast(output[..., 0] > (0.0 if is_logits else 0.5), target.dtype)
    return tf.argmax(output, axis=-1, output_type=target.dtype)
