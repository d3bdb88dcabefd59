"""What can be wrong with a torch config and be found before anything starts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim import Optimizer

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.auto import (
    check_names,
    check_network,
    default_monitor,
    fill_from_dataset,
)
from rtrain.trainers.loops.callbacks.build import check_trainer_callbacks
from rtrain.trainers.loops.loss_kinds import check_loss_kind
from rtrain.trainers.loops.monitor import Monitor
from rtrain.trainers.loops.number_ranges import check_numbers
from rtrain.trainers.torch.build import build_loss
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.inputs.transforms import check_transforms
from rtrain.trainers.torch.losses.metrics import directions as metric_directions
from rtrain.trainers.torch.losses.own import is_function
from rtrain.trainers.torch.optimization.schedule import check_scheduler, watches_metric
from rtrain.trainers.torch.process_settings import check_gpu
from rtrain.trainers.torch.sanity_check import check_loss
from rtrain.trainers.torch.strategies.checks import check_strategy


def check_conf(job: Job) -> None:
    """Check targets, devices, splits and sizes.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    conf: Conf = job.conf.trainer
    info = check_network(job)
    seen = check_transforms(conf, info, job.builder)
    _check_targets(conf, seen, job)
    _check_device(conf, job)
    _check_watched(conf, info, job)
    check_trainer_callbacks(conf.callbacks, job.builder)
    check_strategy(conf, seen, job)


def _check_targets(conf: Conf, info: DatasetInfo, job: Job) -> None:
    job.builder.check_node(fill_from_dataset(conf.model, info), "trainer.model")
    check_numbers(conf.optimizer, "trainer.optimizer")
    job.builder.check_node(conf.optimizer, "trainer.optimizer", num_args=1)
    one_weight = [torch.zeros(1, 1, requires_grad=True)]
    with _without_compiler():
        _check_optimizer(job.builder.build(conf.optimizer, "trainer.optimizer", one_weight))  # is lr a number?
    check_scheduler(conf, job.builder)
    if conf.loss is not None:
        filled, num_args = fill_from_dataset(conf.loss, info, "trainer.loss"), 2 * is_function(conf.loss, job.builder)
        job.builder.check_node(filled, "trainer.loss", num_args=num_args)
        words = {"of_numbers": "loss=mse", "of_classes": "loss=cross_entropy"}
        check_loss_kind(conf.loss["_target_"], job, **words)
        check_loss(build_loss(conf, job.data, job.builder), info)
    check_names(conf, info)
    for name, node in conf.metrics.items():
        where = f"trainer.metrics.{name}"
        job.builder.check_node(fill_from_dataset(node, info, where), where)


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Let torch make an optimizer without its compiler, whose import takes as long as torch's: nothing is compiled."""
    add_group: Any = inspect.unwrap(Optimizer.add_param_group)
    if hasattr(add_group, "__dynamo_disable"):  # it has been imported
        yield
        return
    add_group.__dynamo_disable = add_group
    try:
        yield
    finally:
        del add_group.__dynamo_disable


def _check_optimizer(optimizer: object) -> None:
    """Refuse an optimizer whose step computes the gradient itself, as often as it wants: LBFGS."""
    if not isinstance(optimizer, Optimizer):
        return
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ConfigError(
            f"trainer.optimizer: {type(optimizer).__name__} needs a closure that recomputes the gradient.",
            "Choose another optimizer, e.g. trainer/optimizer=adamw, or a custom trainer.train_loop.",
        )


def _check_watched(conf: Conf, info: DatasetInfo, job: Job) -> None:
    """Refuse a schedule that takes the monitored metric for better in the other direction."""
    said = (conf.scheduler or {}).get("mode")
    if said is None or not watches_metric(conf, job.builder):
        return
    best = job.conf.run.checkpoint.best
    directions = metric_directions(conf.metrics, job.builder).configured(best, conf)
    watched = Monitor.of(best, conf, directions, default_monitor(conf.evaluate_split, info))
    if watched.mode not in (None, said):
        raise ConfigError(
            f"trainer.scheduler.mode={said}: the schedule watches {watched.name}, for which a "
            f"{'smaller' if watched.mode == 'min' else 'larger'} value is better.",
            "Remove the mode, or watch another metric: run.checkpoint.best.monitor=...",
        )


def _check_device(conf: Conf, job: Job) -> None:
    check_gpu(job.conf.scaling)
    if conf.sync_batchnorm and not job.conf.scaling.use_gpu:
        raise ConfigError(
            "trainer.sync_batchnorm works only on GPUs.",
            "On CPUs a model with group norm gives the same result for any number of workers: trainer.model.norm=group",
        )
