"""What can be wrong with a torch config and be found before anything starts."""

from __future__ import annotations

import torch

from rtrain.config.targets import check_node
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.from_dataset import (
    check_quantities,
    check_split,
    check_task,
    evaluated_split,
    fill_from_dataset,
    monitor_of,
)
from rtrain.trainers.tasks import CLASSES, metric_names
from rtrain.trainers.torch.build import auto_lengths, schedule_length
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.strategies.checks import check_strategy


def check_conf(conf: Conf, info: DatasetInfo, job: Job) -> None:
    """Check targets, devices, splits and sizes.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    check_task("torch", info, (*CLASSES, "regression"))
    check_quantities("torch", info)
    _check_targets(conf, info, job)
    _check_device(conf, job)
    check_split(conf.evaluate_split, info)
    split = evaluated_split(conf.evaluate_split, info)
    if conf.early_stopping is not None and split is None:
        raise ConfigError("trainer.early_stopping needs an evaluation, but there is no split to evaluate on.")
    num_workers = max(1, job.conf.scaling.num_workers)
    sharing = conf.num_with_own_rows(num_workers)
    total = conf.batch_size_of_all(sharing)
    if total < sharing:
        raise ConfigError(f"trainer.global_batch_size={total} is less than one row for each of {sharing} workers.")
    check_strategy(conf, info, job)
    _check_monitor(conf, info, job)


def _check_targets(conf: Conf, info: DatasetInfo, job: Job) -> None:
    check_node(fill_from_dataset(conf.model, info), "trainer.model", job.allow)
    check_node(conf.optimizer, "trainer.optimizer", job.allow, num_args=1)
    if conf.scheduler is not None:
        provided = dict.fromkeys(auto_lengths(conf), 1)
        if provided and schedule_length(conf, steps_per_epoch=1) is None:
            raise ConfigError(
                f"trainer.scheduler.{next(iter(provided))}: auto needs a run whose steps are known before.",
                "Set trainer.max_epochs or trainer.max_steps, or a number here.",
            )
        check_node({**conf.scheduler, **provided}, "trainer.scheduler", job.allow, num_args=1)
    if conf.loss is not None:
        check_node(fill_from_dataset(conf.loss, info, "trainer.loss"), "trainer.loss", job.allow)
    for name, node in conf.metrics.items():
        where = f"trainer.metrics.{name}"
        check_node(fill_from_dataset(node, info, where), where, job.allow)


def _check_device(conf: Conf, job: Job) -> None:
    scaling = job.conf.scaling
    if scaling.use_gpu and scaling.num_workers == 0 and not torch.cuda.is_available():
        raise ConfigError("scaling.use_gpu: torch sees no GPU on this machine.", "Try: use_gpu=false")
    if conf.sync_batchnorm and not scaling.use_gpu:
        raise ConfigError(
            "trainer.sync_batchnorm works on GPUs only.",
            "On CPUs a model with group norm gives the same result for any number of workers: trainer.model.norm=group",
        )


def _check_monitor(conf: Conf, info: DatasetInfo, job: Job) -> None:
    monitor = monitor_of(conf.evaluate_split, info, job.conf.run.checkpoint)
    split = evaluated_split(conf.evaluate_split, info)
    named = [("run.checkpoint.monitor", job.conf.run.checkpoint.monitor)]
    if conf.early_stopping is not None:
        named.append(("trainer.early_stopping.monitor", conf.early_stopping.monitor))
    known = {"train/loss", "train/epoch_loss"}
    if split is not None:
        known |= {f"{split}/{name}" for name in (*metric_names(info.task), *conf.metrics)}
    for key, name in named:
        if name is not None and name not in known:
            raise ConfigError(f"{key}: this run reports no {name}, only {', '.join(sorted(known))}.")
    assert monitor.mode in ("min", "max")
