"""The graphs of one optimizer step and of one batch of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rtrain.datasets.base import Columns, DatasetInfo
from rtrain.trainers.loops.tasks import CLASSES, PLACES, TINY
from rtrain.trainers.tensorflow.inputs import Inputs
from rtrain.trainers.tensorflow.outputs import row_metrics
from rtrain.trainers.tensorflow.ranks import TensorflowRanks


def target_spec(info: DatasetInfo) -> Any:
    """Return shape and type of the targets of a batch of any size."""
    shape = (None, *info.input_shape[:1]) if info.task in PLACES else (None,)
    return tf.TensorSpec(shape, tf.int64 if info.task in CLASSES else tf.float32)


def weight_spec(info: DatasetInfo) -> Any:
    """Return shape and type of the weights: as many axes as targets have, so that they are for all places of a row."""
    return tf.TensorSpec((None, *[1] * (target_spec(info).shape.rank - 1)), tf.float32)


def zeros(spec: Any, num_rows: int = 1) -> Any:
    """Return rows of zeros."""
    return tf.zeros((num_rows, *spec.shape[1:]), spec.dtype)


def train_step(
    model: Any, inputs: Inputs, info: DatasetInfo, ranks: TensorflowRanks, *, parts: int, skips: bool
) -> Callable[..., Any]:
    """Return the graph of one step, which any number of rows goes through; it returns the loss over all ranks.

    It takes rows, targets and weights of this rank, and its share of the rows of all ranks: the gradient is that of the
    mean over all rows, by their weights if these are 1 in the mean. It goes through the rows in ``parts``, in turn.
    Batch statistics and the like become the mean over ranks by the same shares. If it ``skips``, a step whose
    loss or gradients over all ranks are not finite changes neither weights nor statistics nor the optimizer, and its
    loss is NaN.
    """
    scales = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    seeds = {id(one) for one in seed_states(model)}
    shared = [one for one in model.non_trainable_variables if id(one) not in seeds]

    def step(x: Any, y: Any, weight: Any, share: Any) -> Any:
        variables = model.trainable_variables
        before = [tf.identity(one.value) for one in shared] if skips else []
        num_rows = tf.shape(y)[0]
        count = tf.minimum(parts, num_rows)

        def part(place: Any) -> tuple[Any, Any, Any, Any]:
            if parts == 1:
                return x, y, weight, share
            begin, end = place * num_rows // count, (place + 1) * num_rows // count
            return x[begin:end], y[begin:end], weight[begin:end], share * tf.cast((end - begin) / num_rows, tf.float32)

        def backward(x: Any, y: Any, weight: Any, share: Any) -> tuple[Any, list[Any]]:
            with tf.GradientTape() as tape:
                rows = inputs.ready(x)
                output = call(model, rows, training=True)
                loss = model.compute_loss(x=rows, y=y, y_pred=output, sample_weight=weight, training=True) * share
                scaled = model.optimizer.scale_loss(loss)
            return loss, tape.gradient(scaled, [one.value for one in variables])

        def add(place: Any, loss: Any, *before: Any) -> tuple[Any, ...]:
            more, found = backward(*part(place))
            new = [tf.convert_to_tensor(part) for part in found if part is not None]
            return place + 1, loss + more, *(old + one for old, one in zip(before, new, strict=True))

        loss, found = backward(*part(0))
        trained = [one for one, part in zip(variables, found, strict=True) if part is not None]
        gradients = [tf.convert_to_tensor(part) for part in found if part is not None]
        if parts > 1:
            loop = (1, loss, *gradients)
            _, loss, *gradients = tf.while_loop(lambda place, *_: place < count, add, loop, parallel_iterations=1)
        if ranks.size > 1:
            statistics = [tf.cast(one.value, tf.float32) * share for one in shared]
            loss, *rest = sum_tensors([loss, *gradients, *statistics], ranks)
            gradients = rest[: len(gradients)]
            for one, mean in zip(shared, rest[len(gradients) :], strict=True):
                one.assign(keras.ops.cast(mean, one.dtype))
        if not skips:
            model.optimizer.apply(gradients, trained)
            return loss
        # An optimizer that scales the loss leaves out steps whose scaled gradients overflow itself.
        looked_at = [loss] if scales else [loss, *gradients]
        good = tf.reduce_all([tf.reduce_all(tf.math.is_finite(one)) for one in looked_at])
        for one, value in zip(shared, before, strict=True):
            one.assign(tf.where(good, one.value, value))
        keras.ops.cond(good, lambda: model.optimizer.apply(gradients, trained), lambda: None)
        return tf.where(good, loss, math.nan)

    spec = [inputs.x, target_spec(info), weight_spec(info), tf.TensorSpec((), tf.float32)]
    graph: Callable[..., Any] = tf.function(step, input_signature=spec)
    return graph


def is_mean_of_rows(model: Any, inputs: Inputs, columns: Columns, num_rows: int = 64) -> bool:
    """Return whether the loss is a mean over rows, as far as the first ones tell."""
    firsts = columns["y"][:num_rows]
    chosen = np.argsort(firsts.reshape(len(firsts), -1)[:, 0], kind="stable")  # parts that differ as much as they can
    x, y = tf.constant(columns["x"][chosen]), tf.constant(firsts[chosen])
    y = tf.cast(y, tf.float32) if y.dtype.is_floating else y
    x = inputs.ready(x)
    output = call(model, x, training=False)

    def loss(some: slice) -> float:
        return float(model.compute_loss(x=x[some], y=y[some], y_pred=output[some], training=False))

    first, count = len(chosen) // 3, len(chosen)
    parts = first * loss(slice(None, first)) + (count - first) * loss(slice(first, None)) if first else 0.0
    return not first or math.isclose(loss(slice(None)), parts / count, rel_tol=1e-4, abs_tol=1e-6)


def evaluate_step(model: Any, inputs: Inputs, info: DatasetInfo, is_logits: bool) -> Callable[..., Any]:
    """Return the graph of one batch: outputs, and the sums of weights, loss and metrics over its rows, by weight."""

    def step(x: Any, y: Any, weight: Any) -> tuple[Any, Any]:
        rows = inputs.ready(x)
        output = call(model, rows, training=False)
        # Keras takes the mean over rows whatever they weigh.
        scaled = weight / tf.maximum(tf.reduce_mean(weight), TINY)
        loss = model.compute_loss(x=rows, y=y, y_pred=output, sample_weight=scaled, training=False)
        counts = tf.cast(tf.reshape(weight, (-1,)), tf.float64)
        measured = [tf.reduce_sum(one * counts) for one in row_metrics(output, y, is_logits, info.task)]
        total = tf.reduce_sum(counts)
        return output, tf.stack([total, tf.cast(loss, tf.float64) * total, *measured])

    spec = [inputs.x, target_spec(info), weight_spec(info)]
    graph: Callable[..., Any] = tf.function(step, input_signature=spec)
    return graph


def call(model: Any, x: Any, training: bool) -> Any:
    """Call a model, whether or not it wants to know that it is trained."""
    return model(x, training=training) if model._call_has_training_arg else model(x)


def sum_tensors(tensors: Sequence[Any], ranks: TensorflowRanks) -> list[Any]:
    """Return the sum of each tensor over all ranks: one exchange for all of them."""
    flat = tf.concat([tf.reshape(tf.cast(one, tf.float32), (-1,)) for one in tensors], axis=0)
    parts = tf.split(ranks.reduce(flat), [one.shape.num_elements() for one in tensors])
    return [tf.cast(tf.reshape(part, one.shape), one.dtype) for part, one in zip(parts, tensors, strict=True)]


def seed_states(model: Any) -> list[Any]:
    """Return the variables that decide what is random in the model."""
    weights = {id(one) for one in model.weights}
    return [one for one in model.variables if id(one) not in weights]
