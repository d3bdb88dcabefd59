"""What a task means to a torch model: its usual loss, and what is counted in addition to the loss."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError
from rtrain.trainers.loops.tasks import CLASSES
from rtrain.trainers.sanity_check import WrongOutputsError


def usual_loss(task: str) -> nn.Module:
    """Return cross entropy for classes, else squared error."""
    return nn.CrossEntropyLoss() if task in CLASSES else nn.MSELoss()


def fit_output(output: Any, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return output and target as losses take them.

    The last axis of a single output is dropped: (rows, 1) meets a target of (rows,). Of sequences, each place becomes
    a row: (rows, length, classes) and (rows, length) become (rows * length, classes) and (rows * length,).

    Raises:
        TrainingError: The model's output is not a tensor.
    """
    if output is None:
        raise TrainingError("the model returns None: its forward ends without a return.", "Return the logits.")
    if not isinstance(output, Tensor):
        raise TrainingError(
            f"the model returns a {type(output).__name__}, but the loss needs one tensor.",
            "Wrap the model so that forward returns its logits, or write a custom trainer.train_loop.",
        )
    if target.ndim == 2 and output.ndim == 3:
        return output.flatten(0, 1), target.flatten()
    if output.ndim == target.ndim + 1 and output.shape[-1] == 1:
        return output.squeeze(-1), target
    return output, target


def check_output(output: Tensor, target: Tensor, info: DatasetInfo) -> None:
    """Find a model that doesn't fit the data, where a loss of torch would give a riddle or broadcast in silence.

    Args:
        output: As ``fit_output`` returns it.
        target: As ``fit_output`` returns it.
        info: The dataset.

    Raises:
        TrainingError: There are other outputs than the targets need.
    """
    hint = "Set the model's number of outputs to auto, or set trainer.loss to a custom loss."
    if info.task == "regression" and output.shape != target.shape:
        shapes = f"{tuple(output.shape)} for {len(target)} targets of shape {tuple(target.shape)}"
        raise TrainingError(f"the model returns {shapes}.", hint)
    if info.task not in CLASSES:
        return
    if output.ndim != 2 or len(output) != len(target) or output.shape[1] < (info.num_classes or 0):
        raise WrongOutputsError(output.shape[1:], info, hint)


def check_measured(output: Tensor, target: Tensor, info: DatasetInfo) -> None:
    """Find outputs that may suit a loss of the user's, but not the other metrics of an evaluation.

    Args:
        output: As ``fit_output`` returns it.
        target: As ``fit_output`` returns it.
        info: The dataset.

    Raises:
        TrainingError: Accuracy or errors can't be counted.
    """
    classes = info.task in CLASSES
    if output.shape[:1] == target.shape and output.ndim == 2 if classes else output.shape == target.shape:
        return
    shapes = f"the model returns {tuple(output.shape)} for targets of shape {tuple(target.shape)}"
    if not classes:
        raise TrainingError(
            f"{shapes}, for which mae and mse can't be computed.",
            "Return one number per row, or don't evaluate: trainer.evaluate_split=none",
        )
    hint = f"Give the model {info.num_classes} outputs and use loss=cross_entropy"
    if info.num_classes == 2 and output.shape == target.shape:
        hint += ", or predict one number per row: dataset.task=regression"
    raise TrainingError(f"{shapes}, for which the accuracy of {info.num_classes} classes can't be computed.", hint)


def is_of_torch(loss: nn.Module) -> bool:
    """Return whether a loss is one of torch's own."""
    return type(loss).__module__.startswith("torch.nn.")


def has_rows(values: Tensor, num_rows: int) -> bool:
    """Return whether a loss gave as many numbers for each row, and not one for several rows."""
    return values.numel() > 0 and values.numel() % num_rows == 0


def counts(loss: nn.Module, target: Tensor) -> Tensor | None:
    """Return what each row or place counts in the mean that a loss takes; None where all count the same.

    Args:
        loss: One that divides by the weights of the classes that occur (``weight``), or by the places that are not
            left out (``ignore_index``), does so for the rows of one call only.
        target: As ``fit_output`` returns it.
    """
    if not isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) or target.is_floating_point():
        return None
    there = target != loss.ignore_index
    if loss.weight is None:
        return there.float()
    return loss.weight[torch.where(there, target, 0)] * there


@torch.no_grad()
def is_mean_of_rows(loss: nn.Module, output: Tensor, target: Tensor) -> bool:
    """Return what ``is_additive`` does, of a copy of the loss: neither it nor random numbers change."""
    devices = [output.device] if output.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        return is_additive(copy.deepcopy(loss), output.detach().float(), target)


def is_additive(loss: nn.Module, output: Tensor, target: Tensor) -> bool:
    """Return whether the mean loss of some rows follows from that of parts of them, as far as these rows tell.

    Only then do several workers, or parts of a step, have the gradient of all rows together.
    """
    num_rows, first = len(target), len(target) // 3
    if first == 0:
        return True
    order = target.reshape(num_rows, -1)[:, 0].argsort()  # parts that differ as much as they can
    output, target = output[order], target[order]
    whole = loss(output, target).double()
    one, other = (loss(output[some], target[some]).double() for some in (slice(None, first), slice(first, None)))
    together = torch.cat([one, other]) if whole.ndim else (first * one + (num_rows - first) * other) / num_rows
    return torch.allclose(whole, together, rtol=1e-4, atol=1e-6, equal_nan=True)


def sum_over_rows(values: Tensor, num_rows: int, weight: Tensor | None) -> Tensor:
    """Return the sum over rows of a mean, or of values of which each row has some; each row with its weight.

    Args:
        values: (), or (rows, ...), or (rows * length,): the places of one row share its weight.
        num_rows: Rows behind ``values``.
        weight: (rows,), or None for 1; needs one value per row or place.

    Raises:
        TrainingError: There are weights, and one value for several rows.
    """
    if weight is not None:
        if not has_rows(values, num_rows):
            raise no_rows("trainer.loss")
        return (values.reshape(num_rows, -1).mean(1) * weight).sum()
    return values * num_rows if values.ndim == 0 else values.sum() * num_rows / values.numel()


def no_rows(loss: str) -> TrainingError:
    """Return the error of a loss that gives one number where rows, or classes, don't count the same."""
    return TrainingError(
        f"{loss} returns one number for several rows, even with reduction=none: weights can't be used.",
        "Make the loss follow its reduction, or remove dataset.weight and the class weights.",
    )


def row_metrics(task: str, output: Tensor, target: Tensor) -> list[Tensor]:
    """Return what is counted in addition to the loss, for each row or place."""
    if task in CLASSES:
        return [(output.argmax(1) == target).double()]
    error = output.double() - target.double()
    return [error.abs(), error.square()]
