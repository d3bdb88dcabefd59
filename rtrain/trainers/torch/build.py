"""Build model, loss, optimizer, schedule and metrics from their config nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Adam, AdamW, Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import Dataset, DatasetInfo, ResidentSplit
from rtrain.errors import ConfigError, TargetError
from rtrain.trainers.loops.auto import fill_from_dataset
from rtrain.trainers.loops.tasks import PLACES
from rtrain.trainers.torch.checkpoint.state import TrainState
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.inputs.transforms import transformed_info
from rtrain.trainers.torch.losses.of_tasks import usual_loss
from rtrain.trainers.torch.losses.own import own_loss
from rtrain.trainers.torch.optimization.schedule import build_scheduler, schedule_length
from rtrain.trainers.torch.sanity_check import try_model
from rtrain.trainers.torch.strategies.base import Strategy
from rtrain.trainers.worker import Worker


def build_model(node: Mapping[str, Any], info: DatasetInfo, builder: Builder) -> nn.Module:
    """Build the module that ``node`` names.

    Raises:
        ConfigError: It is not a module.
    """
    model = builder.build(fill_from_dataset(node, info), "trainer.model")
    if not isinstance(model, nn.Module):
        raise ConfigError(f"trainer.model: {node['_target_']} returns a {type(model).__name__}, not a torch.nn.Module.")
    if any(is_lazy(one) for one in (*model.parameters(), *model.buffers())):
        _give_sizes(model, info)
    return model


def _give_sizes(model: nn.Module, info: DatasetInfo) -> None:
    """Have lazy layers take their sizes from rows of zeros; a model that can't compute them fails when it is tried."""
    rows = torch.zeros((2, *info.input_shape), dtype=torch.int64 if info.dtype == "int64" else torch.float32)
    was_training = model.training
    with suppress(Exception), torch.no_grad():
        model.eval()(rows)
    model.train(was_training)


def build_outline(conf: Conf, info: DatasetInfo, builder: Builder) -> nn.Module | None:
    """Return the model without its numbers; None if it can't be built like that, so that only workers can check it."""
    try:
        with torch.device("meta"):
            return build_model(conf.model, info, builder)
    except (RuntimeError, NotImplementedError):
        return None


def build_loss(conf: Conf, dataset: Dataset, builder: Builder) -> nn.Module:
    """Build the loss, or the usual one of the task.

    It gives a mean over rows, or one value per row or place where not all count the same.

    Raises:
        ConfigError: The loss is not a mean over rows, or can't give the losses of single rows where these have weights.
    """
    info = dataset.info
    weighted = "weight" in info.columns
    loss = usual_loss(info.task) if conf.loss is None else own_loss(conf.loss, info, builder)
    reduction = getattr(loss, "reduction", None)
    if isinstance(reduction, str):
        _check_reduction(reduction)
        loss.reduction = "none" if weighted or _divides(loss, dataset) else "mean"  # type: ignore[assignment]
    elif weighted:
        raise ConfigError(
            f"trainer.loss: {type(loss).__name__} has no reduction, so row weights can't be used.",
            "Remove dataset.weight, or use a loss of torch.nn.",
        )
    return loss


def _check_reduction(reduction: str) -> None:
    if reduction != "mean":
        raise ConfigError(
            f"trainer.loss.reduction: {reduction} does not work; the loss of a step is the mean over the rows of all "
            "workers.",
            "Leave trainer.loss.reduction out. The gradient of a sum is that of the mean times the rows of a step: "
            "trainer.optimizer.lr can make up for it.",
        )


def _divides(loss: nn.Module, dataset: Dataset) -> bool:
    """Return whether a loss divides by the weights of classes, or leaves out places that the dataset may have."""
    if not isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss):
        return False
    resident = [split.columns["y"] for split in dataset.splits.values() if isinstance(split, ResidentSplit)]
    streamed = len(resident) < len(dataset.splits) and dataset.info.task in PLACES
    return loss.weight is not None or streamed or any((y == loss.ignore_index).any() for y in resident)


def build_metrics(conf: Conf, info: DatasetInfo, builder: Builder) -> dict[str, Any]:
    """Build the torchmetrics of each evaluation, by name."""
    found = {}
    for name, node in conf.metrics.items():
        where = f"trainer.metrics.{name}"
        builder.locate(str(node["_target_"]), f"{where}._target_")
        _refuse_binary(str(node["_target_"]), info, where)
        found[name] = builder.build(fill_from_dataset(node, info, where), where)
    return found


def _refuse_binary(target: str, info: DatasetInfo, where: str) -> None:
    """Refuse a metric of torchmetrics that takes a probability for each row, where models give a number for each class.

    Args:
        target: What has been found to be there, and may be used.
        info: The dataset.
        where: The key.

    Raises:
        TargetError: Names the one that takes these.
    """
    package, _, name = target.rpartition(".")
    if f"{package}.".startswith("torchmetrics.") and name.startswith("Binary") and info.task == "classification":
        other = f"Multiclass{name.removeprefix('Binary')}"
        is_there = hasattr(import_module(package), other)
        raise TargetError(
            where,
            f"{name} takes one probability for each row, and the model gives a number for each class",
            to_try(f"'{where}={{_target_: {package}.{other}, num_classes: auto}}'") if is_there else None,
        )


def build_optimizer(conf: Conf, model: nn.Module, strategy: Strategy, builder: Builder) -> Optimizer:
    """Build the optimizer of all parameters that train."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    kind = builder.locate(str(conf.optimizer["_target_"]), "trainer.optimizer._target_")
    is_fused = not strategy.sharded and _is_better_fused(kind, conf.optimizer, trained)
    node = {**conf.optimizer, "fused": True} if is_fused else conf.optimizer
    optimizer: Optimizer = builder.build(node, "trainer.optimizer", trained)
    strategy.split_groups(optimizer)
    return optimizer


def _is_better_fused(kind: Any, node: Mapping[str, Any], weights: Sequence[Tensor]) -> bool:
    """Return whether one kernel for all weights is the fastest way, and the config doesn't choose one.

    On GPUs torch itself chooses one. On CPUs it takes a dozen calls for each weight, which is half of a step of a small
    network; of SGD there is nothing to gain.
    """
    return (
        kind in (Adam, AdamW)
        and not {"fused", "foreach", "capturable", "differentiable"} & set(node)
        and all(one.device.type == "cpu" and one.is_floating_point() for one in weights)
    )


def build_state(worker: Worker, strategy: Strategy, steps_per_epoch: int, loss: nn.Module) -> TrainState:
    """Build model, optimizer, schedule and what belongs to them, the same on every rank; the model fits the data."""
    conf: Conf = worker.conf
    ranks, info = strategy.ranks, transformed_info(conf, worker.data.info, worker.builder)
    model = build_model(conf.model, info, worker.builder)
    if conf.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if conf.sync_batchnorm and ranks.size > 1:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    if not strategy.sharded or ranks.device.type == "cpu":  # a GPU may have no memory for a model that is whole
        try_model(model.to(ranks.device), loss, worker, strategy.data)
    model = strategy.place(model)
    optimizer = build_optimizer(conf, model, strategy, worker.builder)
    return TrainState(
        model=model,
        optimizer=optimizer,
        scheduler=build_scheduler(worker, optimizer, schedule_length(conf, steps_per_epoch)),
        scaler=torch.amp.GradScaler(ranks.device.type, enabled=conf.precision == "fp16"),
        ema=make_ema(model, conf.ema_decay),
    )


def make_ema(model: nn.Module, decay: float | None) -> AveragedModel | None:
    """Return a moving average of the model's weights and buffers, or None."""
    if decay is None:
        return None
    average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
    return AveragedModel(model, multi_avg_fn=average, use_buffers=True)
