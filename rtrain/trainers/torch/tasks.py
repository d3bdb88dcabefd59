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


def sums_over_rows(task: str, output: Tensor, target: Tensor, num_rows: int) -> list[Tensor]:
    """Return what is counted beside the loss, summed over rows; the places of one row share the weight of it."""
    if task in CLASSES:
        return [(output.argmax(1) == target).sum().double() * num_rows / max(1, len(target))]
    error = (output.double() - target.double()).reshape(len(target), -1)
    return [error.abs().mean(1).sum(), error.square().mean(1).sum()]
