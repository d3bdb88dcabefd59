"""Build model, optimizer, loss, metrics and callbacks from their config nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.loops.auto import channels_last_shape, fill_from_dataset, fill_lengths
from rtrain.trainers.loops.directions import known_direction
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.sanity_check import tried_model
from rtrain.trainers.tensorflow.config import Conf

PROBABILITIES = ("softmax", "sigmoid")
"""Activations after which the outputs are probabilities."""
WATCHING = (keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau, keras.callbacks.ModelCheckpoint)
"""Callbacks that watch a metric, and ask the metrics that a model is compiled with which way is better."""


def fill(node: Mapping[str, Any], info: DatasetInfo, where: str) -> dict[str, Any]:
    """Return ``node`` with what the dataset says in place of ``auto``."""
    return fill_from_dataset(node, info, where, channels_last_shape(info))


def build_model(conf: Conf, info: DatasetInfo, builder: Builder) -> Any:
    """Build the model with all its weights.

    Raises:
        ConfigError: It is not a Keras 3 model, or trains itself.
    """
    model = builder.build(fill(conf.model, info, "trainer.model"), "trainer.model")
    if not isinstance(model, keras.Model):
        made = f"{type(model).__module__}.{type(model).__name__}"
        raise ConfigError(f"trainer.model: {conf.model['_target_']} returns a {made}, not a Keras 3 model.")
    check_model_class(type(model), conf)
    if not model.built:
        dtype, shape = "int64" if info.dtype == "int64" else "float32", channels_last_shape(info)
        with tried_model(conf.model, info, shape):
            # Tracing builds the layers, as calling does, but computes nothing: with zeros honest models may fail.
            tf.function(lambda x: model(x)).get_concrete_function(tf.TensorSpec((None, *shape), dtype))
    return model


def check_model_class(kind: Any, conf: Conf) -> None:
    """Refuse a model that overrides ``train_step``, because rtrain does not call it.

    Raises:
        ConfigError: It has one.
    """
    if issubclass(kind, keras.Model) and kind.train_step is not keras.Model.train_step:
        raise ConfigError(
            f"trainer.model: {conf.model['_target_']} has a custom train_step, which rtrain doesn't call.",
            "Override compute_loss instead: it is called, with any number of workers.",
        )


def build_optimizer(conf: Conf, steps: int | None, builder: Builder) -> Any:
    """Build the optimizer.

    Raises:
        ConfigError: It can't be built, is none, or Keras would ignore an argument.
    """
    node = fill_lengths(conf.optimizer, steps, "trainer.optimizer")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer = builder.build(node, "trainer.optimizer")
    for warning in caught:
        if "will be ignored" in str(warning.message):  # Keras warns like this about decay
            raise ConfigError(f"trainer.optimizer: {warning.message}", "Leave the argument out.")
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        made = type(optimizer).__name__
        raise ConfigError(f"trainer.optimizer: {node['_target_']} returns a {made}, not a Keras optimizer.")
    return optimizer


def averaging(optimizer: Any) -> list[Any]:
    """Return those optimizers that keep averages of weights: this one, or the ones inside of it."""
    inner = getattr(optimizer, "inner_optimizer", None)
    parts = (optimizer, *([] if inner is None else [inner]), *getattr(inner or optimizer, "optimizers", ()))
    return [one for one in parts if one.use_ema]


def note_on_averages(optimizer: Any, steps: int) -> str | None:
    """Return a notice if averages are not the weights after ``steps`` steps; ``model.fit`` ends with averages."""
    for one in averaging(optimizer):
        every = one.ema_overwrite_frequency
        if every and steps % every:
            return (
                f"trainer.optimizer.ema_overwrite_frequency: averages become the weights every {every} steps, but not "
                f"after step {steps}, the last one: the last checkpoint contains weights that were trained since, "
                "where "
                f"model.fit ends with averages. For the same, choose a divisor of {steps}."
            )
    return None


def build_loss(conf: Conf, model: Any, info: DatasetInfo, builder: Builder, *, single: bool = False) -> Any:
    """Build the loss, or the usual one of the task.

    Args:
        conf: It may name one.
        model: Its last layer tells whether outputs are logits.
        info: The dataset.
        builder: What the config may name.
        single: Two classes share one output.
    """
    if conf.loss is not None:
        return builder.build(fill(conf.loss, info, "trainer.loss"), "trainer.loss")
    if single:
        return keras.losses.BinaryCrossentropy(from_logits=ends_in_logits(model))
    if info.task in CLASSES:
        return keras.losses.SparseCategoricalCrossentropy(from_logits=ends_in_logits(model))
    return keras.losses.MeanSquaredError()


def build_metrics(conf: Conf, info: DatasetInfo, builder: Builder) -> dict[str, Any]:
    """Build the Keras metrics of each evaluation, by name."""
    return {
        name: builder.build(fill(node, info, f"trainer.metrics.{name}"), f"trainer.metrics.{name}")
        for name, node in conf.metrics.items()
    }


def build_callbacks(conf: Conf, metrics: Mapping[str, Any], builder: Builder) -> list[Any]:
    """Build the callbacks; those that watch a metric learn which way it gets better."""
    found = [builder.build(node, f"trainer.callbacks.{place}") for place, node in enumerate(conf.callbacks)]
    for one in found:
        if isinstance(one, WATCHING) and getattr(one, "mode", None) == "auto":
            one.mode = _mode(one.monitor, metrics)
    return found


def _mode(monitor: str, metrics: Mapping[str, Any]) -> str:
    """Return which way a metric gets better, as Keras would find out from the metrics that a model is compiled with."""
    name = monitor.removeprefix("val_")
    if name in metrics:
        return {"up": "max", "down": "min"}.get(getattr(metrics[name], "_direction", ""), "auto")
    return known_direction(name) or "auto"


def gives_logits(loss: Any, model: Any) -> bool:
    """Return whether the outputs of ``model`` are logits, as its loss sees them; else they are probabilities."""
    config = loss.get_config() if hasattr(loss, "get_config") else {}
    return bool(config.get("from_logits", ends_in_logits(model)))


def ends_in_logits(model: Any) -> bool:
    """Return whether nothing makes probabilities of the last layer's outputs, as far as the model shows its layers."""
    last = model.layers[-1] if model.layers else None
    if isinstance(last, keras.layers.Softmax):
        return False
    return getattr(getattr(last, "activation", None), "__name__", "") not in PROBABILITIES
