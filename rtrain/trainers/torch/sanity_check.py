"""Model and loss, tried on the first rows before training: what doesn't fit the data is one error that names both."""

from __future__ import annotations

import warnings
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from rtrain.config.did_you_mean import to_try
from rtrain.datasets.base import DatasetInfo, EpochPlan, ResidentSplit
from rtrain.errors import ConfigError, first_line
from rtrain.trainers.loops.auto import evaluated_split
from rtrain.trainers.loops.seeding import kept_random_numbers
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.sanity_check import SanityCheckError, first_rows, is_at_hand, num_tried_rows, tried_model, try_rows
from rtrain.trainers.torch.config import Conf, LoaderConf
from rtrain.trainers.torch.evaluation import autocast
from rtrain.trainers.torch.inputs.batch_sizes import backward_rows, single_row
from rtrain.trainers.torch.inputs.loader import Step
from rtrain.trainers.torch.inputs.transforms import open_loader
from rtrain.trainers.torch.losses.of_tasks import (
    check_measured,
    check_output,
    counts,
    fit_output,
    has_rows,
    is_of_torch,
    no_rows,
)
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker


def try_model(model: nn.Module, loss: nn.Module, worker: Worker, ranks: TorchRanks) -> None:
    """Call a new model with the first rows of training, and the loss with what it gives; nothing of them changes.

    Args:
        model: On the device.
        loss: On the device.
        worker: Has the rows, and the precision to compute in.
        ranks: Those that have different rows; each of them tries the same rows.

    Raises:
        TrainingError: The model fails with these rows, or its output doesn't fit the targets or what evaluations
            measure, or the loss can't weigh rows, or the model fails in training with a single row, and some batch
            has one.
    """
    conf, split = worker.conf, worker.data.splits["train"]
    sizes = backward_rows(split.num_rows, conf, ranks.size)
    shares_statistics = conf.sync_batchnorm and ranks.size > 1
    has_single_row = 1 in sizes and is_at_hand(split) and not shares_statistics

    def attempt(rows: ResidentSplit) -> Step:
        step = _step_of(rows, worker, ranks.device)
        _try(model, loss, step, worker)
        return step

    devices = [ranks.device] if ranks.device.type == "cuda" else []
    with torch.random.fork_rng(devices), kept_random_numbers():
        step = try_rows(worker, max(sizes), attempt)
        if step is not None and has_single_row:
            try_one_row(model, step.x, worker, ranks.size)


def _step_of(rows: ResidentSplit, worker: Worker, device: torch.device) -> Step:
    """Return rows as training has them; ranks have no need of each other for that."""
    alone = TorchRanks(rank=0, size=1, device=device)
    conf = replace(worker.conf, loader=LoaderConf())  # a single step needs no processes
    feed = open_loader(rows, worker.data.info, alone, conf, worker.builder, training=True)
    count = rows.num_rows
    plan = EpochPlan(rank=0, world_size=1, global_batch_size=count, seed=worker.run.seed, shuffle=False)
    return next(iter(feed.steps(plan)))


def _try(model: nn.Module, loss: nn.Module, step: Step, worker: Worker) -> None:
    conf: Conf = worker.conf
    info = worker.data.info
    with tried_model(conf.model, info, step.x.shape[1:]):
        output = _output(model, step.x, conf, training=False)
    output, target = fit_output(output, step.y)
    if is_of_torch(loss):
        check_output(output, target, info)
    if evaluated_split(conf.evaluate_split, info) is not None:
        check_measured(output, target, info)
    if getattr(loss, "reduction", None) == "none" and not has_rows(loss(output.float(), target), len(target)):
        raise no_rows(f"trainer.loss: {type(loss).__name__}")


def try_one_row(model: nn.Module, x: Tensor, worker: Worker, num_ranks: int) -> None:
    """Find a model that needs several rows in training, as batch norm of vectors does.

    Raises:
        TrainingError: It fails with the first one of ``x``.
    """
    conf, info = worker.conf, worker.data.info
    try:
        with tried_model(conf.model, info, x.shape[1:]):
            _output(model, x[:1], conf, training=True)
    except SanityCheckError as error:
        if len(x) > 1:
            with tried_model(conf.model, info, x.shape[1:]):  # what fails with several rows too is another mistake
                _output(model, x, conf, training=True)
        raise single_row(error.__cause__ or error, conf, info.num_rows["train"], num_ranks) from error


@torch.no_grad()
def _output(model: nn.Module, x: Tensor, conf: Conf, *, training: bool) -> object:
    was_training = model.training
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers() if not is_lazy(buffer)]
    try:
        with autocast(conf.precision, x.device):
            return model.train(training)(x)
    finally:
        model.train(was_training)
        for buffer, before in buffers:
            buffer.copy_(before)


def try_outline(model: nn.Module, worker: Worker) -> None:
    """Call a model on the meta device, which has no numbers, with rows that have none either.

    Raises:
        TrainingError: It fails with rows of this shape, or its output doesn't fit the targets.
    """
    conf, info, train = worker.conf, worker.data.info, worker.data.splits["train"]
    step = _step_of(first_rows(train, info, num_tried_rows(info)), worker, torch.device("cpu"))
    with tried_model(conf.model, info, step.x.shape[1:]):
        output, target = fit_output(_output(model, step.x.to("meta"), conf, training=True), step.y)
    check_output(output, target, info)


def check_loss(loss: nn.Module, info: DatasetInfo) -> None:
    """Find a loss of torch that can't compare the dataset's targets with what models usually give.

    Args:
        loss: It changes.
        info: The dataset.

    Raises:
        ConfigError: It fails, or is not the mean of the losses of rows.
    """
    if not is_of_torch(loss):
        return
    weight = getattr(loss, "weight", None)
    if isinstance(weight, Tensor) and info.task == "classification" and weight.numel() != info.num_classes:
        raise ConfigError(
            f"trainer.loss.weight: must have {info.num_classes} weights, one for each class, not {weight.numel()}."
        )
    shapes = ("(rows, classes)", "classes") if info.task in CLASSES else ("(rows,)", "numbers")
    told = f"trainer.loss: {type(loss).__name__} can't compare outputs of shape {shapes[0]} with {shapes[1]}"
    hint = to_try(f"loss={'cross_entropy' if info.task in CLASSES else 'mse'}", "or use a custom loss")
    try:
        with warnings.catch_warnings(action="ignore"):  # of broadcasts, which fail then
            fits = _is_mean(loss, info)
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
        message = f"{told}, the targets of {info.name}: {type(error).__name__}: {first_line(error)}"
        raise ConfigError(message, hint) from error
    if not fits:
        raise ConfigError(f"{told}, the targets of {info.name}: it is not the mean of the losses of rows.", hint)


@torch.no_grad()
def _is_mean(loss: nn.Module, info: DatasetInfo) -> bool:
    """Return whether a loss of some rows is the mean of those of single rows, by what the rows count."""
    # Nothing of another length fits so many rows by chance.
    lengths = {1, info.num_classes, *(buffer.numel() for buffer in loss.buffers())}
    num_rows = min(set(range(2, 9)) - lengths)
    output = torch.linspace(0.1, 0.9, num_rows * (info.num_classes or 1)).reshape(num_rows, -1)
    target = torch.arange(num_rows) % (info.num_classes or 2)
    if info.task not in CLASSES:
        output, target = output[:, 0], target.float()
    counted = counts(loss, target)
    total = num_rows if counted is None else counted.sum()
    loss.reduction = "mean"  # type: ignore[assignment]
    whole = loss(output, target)
    loss.reduction = "none"  # type: ignore[assignment]
    values = loss(output, target)
    return len(values) == num_rows and torch.allclose(whole, values.sum() / total, equal_nan=True)
