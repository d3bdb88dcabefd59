"""Model, loss and metrics, tried before training: what doesn't fit the data is one error that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import flax.errors
import jax
import numpy as np

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError, first_line
from rtrain.trainers.jax.build import RowLoss
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.jax.inputs import Inputs
from rtrain.trainers.jax.nets.base import Net
from rtrain.trainers.jax.nets.modes import MODES
from rtrain.trainers.jax.outputs import fit_output
from rtrain.trainers.loops.auto import channels_last_shape
from rtrain.trainers.loops.tasks import CLASSES, PLACES
from rtrain.trainers.sanity_check import num_tried_rows, tried, tried_model


def try_rows(
    conf: Conf, net: Net, at: tuple[Any, Any], inputs: Inputs, functions: Mapping[str, RowLoss], info: DatasetInfo
) -> list[str]:
    """Call model, loss and metrics for the shapes of what they give; nothing is computed: values don't matter.

    Args:
        conf: The trainer's conf.
        net: The model.
        at: Its weights and state.
        inputs: What makes rows of the dataset those of the model.
        functions: Loss and metrics by their keys in the config.
        info: The dataset.

    Returns:
        Dropout layers that drop nothing in training.

    Raises:
        TrainingError: One of them doesn't fit the data; names it.
    """
    count = num_tried_rows(info)
    x = inputs.narrow(np.zeros((count, *info.input_shape), info.dtype))
    places = info.input_shape[:1] if info.task in PLACES else ()
    target = np.zeros((count, *places), "int32" if info.task in CLASSES else "float32")

    def output(rows: Any, training: bool) -> Any:
        found, _ = net.apply(*at, inputs.ready(rows), jax.random.key(0), training=training)
        return fit_output(found, target, info)

    with tried_model(conf.model, info, channels_last_shape(info)):
        with _without_random_numbers(conf):
            given = jax.eval_shape(partial(output, training=False), x)
        jax.eval_shape(partial(output, training=True), x)
    rows = jax.eval_shape(inputs.ready, x)
    _check_mode(conf, net.hidden_mode(*at, rows))
    for key, function in functions.items():
        _try_function(key, function, (given, target), info)
    return net.idle_dropout(*at, rows)


def _try_function(key: str, function: RowLoss, given: tuple[Any, Any], info: DatasetInfo) -> None:
    """Refuse a loss or metric that gives one number for all rows, or compares each of them with all others.

    What it gives is looked at before the mean of each row is taken, and for one row more: only the first axis may grow.
    """
    shapes = f"outputs of shape {given[0].shape} and targets of shape {given[1].shape}"
    raw, count = getattr(function, "__wrapped__", function), given[0].shape[0]
    with tried(key, info, shapes):
        found, longer = (_shape(raw, given, rows) for rows in (count, count + 1))
    if not (found[:1] == (count,) and longer == (count + 1, *found[1:])):
        raise TrainingError(
            f"{key} returns {_told(found)} for {shapes} of {info.name}, not a number for each row.",
            "Do not average or sum over rows: rtrain does that."
            if len(found) == 0
            else "Compare each output only with the target of the same row.",
        )
    with tried(key, info, shapes):
        jax.eval_shape(function, *given)


def _shape(function: RowLoss, given: tuple[Any, Any], rows: int) -> tuple[int, ...]:
    """Return the shape of what a function gives for so many rows."""
    arguments = (jax.ShapeDtypeStruct((rows, *one.shape[1:]), one.dtype) for one in given)
    return np.shape(jax.eval_shape(function, *arguments))


def _told(shape: tuple[int, ...]) -> str:
    return f"an array of shape {shape}" if shape else "a single number"


@contextmanager
def _without_random_numbers(conf: Conf) -> Iterator[None]:
    """Refuse a model that draws random numbers in an evaluation."""
    try:
        yield
    except flax.errors.InvalidRngError as error:
        raise TrainingError(
            f"trainer.model: {conf.model['_target_']} draws random numbers in an evaluation: {first_line(error)}",
            "Draw them only in training: if the model has an argument or field named train, rtrain sets it.",
        ) from error


def _check_mode(conf: Conf, name: str | None) -> None:
    """Refuse a model that would be trained in the mode of an evaluation."""
    if name is not None:
        raise TrainingError(
            f"trainer.model: {conf.model['_target_']} has {name}, which turns on dropout or batch statistics, but it "
            "would stay as it is in training.",
            f"Remove {name}: rtrain sets it."
            if name in MODES
            else f"Name it train, deterministic or use_running_average, a boolean that rtrain sets. A field can also "
            f"be set explicitly: trainer.model.{name}",
        )
