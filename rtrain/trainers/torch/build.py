"""Build model, loss, optimizer, schedule and metrics from their config nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from rtrain.config.schema import CheckpointConf
from rtrain.config.targets import build
from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.worker import Monitor

AUTO = "auto"
SCHEDULE_LENGTHS = ("T_max", "total_steps", "total_iters", "num_training_steps")
"""Arguments of schedules that mean the number of their steps in the whole run."""


def fill_from_dataset(node: Mapping[str, Any], info: DatasetInfo) -> dict[str, Any]:
    """Return ``node`` with each ``auto`` replaced by what the dataset says, at any depth."""
    outputs = info.num_classes if info.task == "classification" else 1
    known = {
        "in_channels": info.input_shape[0],
        "in_features": math.prod(info.input_shape),
        "input_shape": list(info.input_shape),
        "num_classes": outputs,
        "out_features": outputs,
    }
    return {
        key: known[key]
        if value == AUTO and key in known
        else fill_from_dataset(value, info)
        if isinstance(value, Mapping)
        else value
        for key, value in node.items()
    }


def build_model(node: Mapping[str, Any], info: DatasetInfo, allow: tuple[str, ...]) -> nn.Module:
    """Build the module that ``node`` names."""
    model = build(fill_from_dataset(node, info), "trainer.model", allow)
    assert isinstance(model, nn.Module), f"trainer.model: {node['_target_']} did not make a torch.nn.Module"
    return model


def build_loss(conf: Conf, info: DatasetInfo, allow: tuple[str, ...]) -> nn.Module:
    """Build the loss, or the usual one of the task."""
    if conf.loss is not None:
        loss: nn.Module = build(conf.loss, "trainer.loss", allow)
        return loss
    return nn.CrossEntropyLoss() if info.task == "classification" else nn.MSELoss()


def build_optimizer(conf: Conf, model: nn.Module, allow: tuple[str, ...]) -> Optimizer:
    """Build the optimizer of all parameters that train."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer: Optimizer = build(conf.optimizer, "trainer.optimizer", allow, trained)
    return optimizer


def build_scheduler(
    conf: Conf, optimizer: Optimizer, num_steps: int | None, allow: tuple[str, ...]
) -> LRScheduler | None:
    """Build the schedule; ``num_steps`` is how often it will move on, where that is known."""
    if conf.scheduler is None:
        return None
    lengths = {key: num_steps or 1 for key in SCHEDULE_LENGTHS if conf.scheduler.get(key) == AUTO}
    scheduler: LRScheduler = build({**conf.scheduler, **lengths}, "trainer.scheduler", allow, optimizer)
    return scheduler


def evaluated_split(conf: Conf, info: DatasetInfo) -> str | None:
    """Return the split to evaluate on, or None."""
    if conf.evaluate_split == "none":
        return None
    wanted = ("val", "test") if conf.evaluate_split == "auto" else (conf.evaluate_split,)
    return next((name for name in wanted if info.num_rows.get(name)), None)


def monitor_of(conf: Conf, info: DatasetInfo, checkpoint: CheckpointConf) -> Monitor:
    """Return the metric that decides the best checkpoint: accuracy of a classification, loss of a regression."""
    split = evaluated_split(conf, info)
    usual = "accuracy" if info.task == "classification" else "loss"
    return Monitor.of(checkpoint, default=f"{split}/{usual}" if split else "train/epoch_loss")
