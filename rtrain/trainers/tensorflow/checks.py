"""What can be wrong with a tensorflow config and be found before anything starts."""

from __future__ import annotations

import inspect
from typing import Any

import keras

from rtrain.config.targets import build, check_node, locate
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.from_dataset import (
    check_float32,
    check_monitors,
    check_quantities,
    check_task,
    dataset_of,
    fill_lengths,
    num_steps,
)
from rtrain.trainers.tasks import CLASSES
from rtrain.trainers.tensorflow.build import build_optimizer, check_model_class, fill
from rtrain.trainers.tensorflow.config import Conf

ONE_HOT = ("CategoricalCrossentropy", "CategoricalFocalCrossentropy", "CategoricalHinge")
"""Losses and metrics whose targets are one-hot."""


def check_conf(job: Job) -> None:
    """Check targets, splits and sizes.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    info = dataset_of(job)
    check_task("tensorflow", info, (*CLASSES, "regression"))
    check_quantities("tensorflow", info)
    check_float32("tensorflow", info)
    check_monitors(conf, info, job, tuple(conf.metrics))
    check_node(fill(conf.model, info, "trainer.model"), "trainer.model", job.allow)
    model = locate(conf.model["_target_"], "trainer.model._target_", job.allow)
    if inspect.isclass(model):
        check_model_class(model, conf)
    steps = num_steps(conf, steps_per_epoch=1)
    check_node(fill_lengths(conf.optimizer, steps, "trainer.optimizer"), "trainer.optimizer", job.allow)
    # The signatures of Keras's optimizers take any keyword: only their constructors know better.
    build_optimizer(conf, steps, job.allow)
    if conf.loss is not None:
        check_node(fill(conf.loss, info, "trainer.loss"), "trainer.loss", job.allow)
        _check_targets(conf.loss["_target_"], info)
        loss = build(fill(conf.loss, info, "trainer.loss"), "trainer.loss", job.allow)
        _check_reduction(loss)
        if job.conf.scaling.num_workers > 1:
            _check_ignored(loss)
    for name, node in conf.metrics.items():
        check_node(fill(node, info, f"trainer.metrics.{name}"), f"trainer.metrics.{name}", job.allow)
    for place, node in enumerate(conf.callbacks):
        where = f"trainer.callbacks.{place}"
        check_node(node, where, job.allow)
        kind = locate(node["_target_"], where, job.allow)
        if inspect.isclass(kind) and not issubclass(kind, keras.callbacks.Callback):
            raise ConfigError(f"{where}: {node['_target_']} is no Keras callback.")


def _check_reduction(loss: Any) -> None:
    """Refuse a loss that is not a mean over rows; of others, the first rows tell."""
    reduction = getattr(loss, "reduction", "mean")
    if reduction not in ("sum_over_batch_size", "mean"):
        raise ConfigError(
            f"trainer.loss.reduction: {reduction} does not work; the loss of a step is the mean over the rows of all "
            "workers, by their weights.",
            "Try: trainer.loss.reduction=sum_over_batch_size. The gradient of a sum is that of the mean times the rows "
            "of a step: trainer.optimizer.learning_rate can make up for it.",
        )


def _check_ignored(loss: Any) -> None:
    """Refuse a loss that leaves rows out, which several workers would divide by differently."""
    if getattr(loss, "ignore_class", None) is not None:
        raise ConfigError(
            "trainer.loss.ignore_class: the loss divides by the rows of other classes in the worker's own batch, so "
            "that several workers would train something else than one does.",
            "Try: num_workers=1, or trainer=torch, whose CrossEntropyLoss has ignore_index",
        )


def _check_targets(loss: str, info: DatasetInfo) -> None:
    name = loss.rpartition(".")[2]
    if info.task not in CLASSES and name.startswith("SparseCategorical"):
        raise ConfigError(
            f"trainer.loss: {name} wants the numbers of classes, but those of {info.name} are numbers to predict.",
            "Try: keras.losses.MeanSquaredError, or dataset.task=classification",
        )
    if name in ONE_HOT:
        raise ConfigError(
            f"trainer.loss: {name} wants one-hot targets, but the dataset gives the numbers of classes.",
            "Try: keras.losses.SparseCategoricalCrossentropy",
        )
