"""What a task means to a torch model: its usual loss, and what is counted beside the loss."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from rtrain.errors import TrainingError
from rtrain.trainers.tasks import CLASSES


def usual_loss(task: str) -> nn.Module:
    """Return cross entropy for classes, else squared error."""
    return nn.CrossEntropyLoss() if task in CLASSES else nn.MSELoss()


def fit_output(output: Any, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return output and target as losses take them.

    The last axis of a single output is dropped: (rows, 1) meets a target of (rows,). Of sequences, each place becomes
    a row: (rows, length, classes) and (rows, length) become (rows * length, classes) and (rows * length,).

    Raises:
        TrainingError: The model's output is no tensor.
    """
    if not isinstance(output, Tensor):
        raise TrainingError(
            f"the model returns a {type(output).__name__}, but the loss needs one tensor.",
            "Wrap the model so that forward returns its logits, or give trainer.train_loop a loop of your own.",
        )
    if target.ndim == 2 and output.ndim == 3:
        return output.flatten(0, 1), target.flatten()
    if output.ndim == target.ndim + 1 and output.shape[-1] == 1:
        return output.squeeze(-1), target
    return output, target


def sum_over_rows(values: Tensor, num_rows: int, weight: Tensor | None) -> Tensor:
    """Return the sum over rows of a mean, or of values of which each row has some; each row with its weight.

    Args:
        values: (), or (rows, ...), or (rows * length,): the places of one row share its weight.
        num_rows: Rows behind ``values``.
        weight: (rows,), or None for 1; needs one value per row or place.
    """
    if weight is not None:
        return (values.reshape(num_rows, -1).mean(1) * weight).sum()
    return values * num_rows if values.ndim == 0 else values.sum() * num_rows / values.numel()


def row_metrics(task: str, output: Tensor, target: Tensor) -> list[Tensor]:
    """Return what is counted beside the loss, for each row or place."""
    if task in CLASSES:
        return [(output.argmax(1) == target).double()]
    error = output.double() - target.double()
    return [error.abs(), error.square()]
