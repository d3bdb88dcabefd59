"""Model and loss, tried on a few rows before training: what doesn't fit the data is one error that names both."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, first_line
from rtrain.trainers.from_dataset import num_tried_rows, tried_model
from rtrain.trainers.tasks import CLASSES, PLACES
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.evaluation import autocast
from rtrain.trainers.torch.tasks import check_output, counts, fit_output, has_rows, is_of_torch, no_rows


def try_model(model: nn.Module, loss: nn.Module, conf: Conf, info: DatasetInfo, device: torch.device) -> None:
    """Call a new model with rows of zeros, and the loss with what it gives; nothing of them changes.

    Args:
        model: On the device.
        loss: On the device.
        conf: The precision to compute in.
        info: The dataset as the model sees it.
        device: Where the rows are.

    Raises:
        TrainingError: The model fails with rows of this shape, or its output doesn't fit the targets, or the loss can't
            weigh rows.
    """
    num_rows = num_tried_rows(info)
    x = torch.zeros((num_rows, *info.input_shape), dtype=torch.int64 if info.dtype == "int64" else torch.float32)
    places = info.input_shape[:1] if info.task in PLACES else ()
    y = torch.zeros((num_rows, *places), dtype=torch.int64 if info.task in CLASSES else torch.float32, device=device)
    with autocast(conf.precision, device), tried_model(conf.model, info, info.input_shape):
        output = _output(model, x.to(device))
    output, target = fit_output(output, y)
    if is_of_torch(loss):
        check_output(output, target, info)
    if getattr(loss, "reduction", None) == "none" and not has_rows(loss(output.float(), target), len(target)):
        raise no_rows(f"trainer.loss: {type(loss).__name__}")


@torch.no_grad()
def _output(model: nn.Module, x: Tensor) -> object:
    was_training, buffers = model.training, [buffer.clone() for buffer in model.buffers()]
    with torch.random.fork_rng([x.device] if x.device.type == "cuda" else []):
        try:
            return model.eval()(x)
        finally:
            model.train(was_training)
            for buffer, before in zip(model.buffers(), buffers, strict=True):
                buffer.copy_(before)


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
    shapes = ("(rows, classes)", "classes") if info.task in CLASSES else ("(rows,)", "numbers")
    told = f"trainer.loss: {type(loss).__name__} can't compare outputs of shape {shapes[0]} with {shapes[1]}"
    hint = f"Try: trainer/loss={'cross_entropy' if info.task in CLASSES else 'mse'}, or a loss of your own"
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
