"""Evaluate a model on a split: every row of every rank counts once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from rtrain.datasets.base import Pass
from rtrain.errors import TrainingError
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.data import Feed
from rtrain.trainers.torch.world import World

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def fit_target(output: Any, target: Tensor) -> Tensor:
    """Drop the last axis of a single output, so that (rows, 1) meets a target of (rows,).

    Raises:
        TrainingError: The model's output is no tensor.
    """
    if not isinstance(output, Tensor):
        raise TrainingError(
            f"the model returns a {type(output).__name__}, but the loss needs one tensor.",
            "Wrap the model so that forward returns its logits, or give trainer.train_loop a loop of your own.",
        )
    return output.squeeze(-1) if output.ndim == target.ndim + 1 and output.shape[-1] == 1 else output


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Return a context in which models compute in ``precision``."""
    return torch.autocast(device.type, dtype=DTYPES[precision], enabled=precision != "fp32")


class Evaluation:
    """The metrics of a split: the loss, accuracy or errors, and torchmetrics of the user's choice.

    Args:
        feed: Rows of the split.
        loss: Mean over rows.
        world: All ranks; they evaluate together.
        conf: Batch size and precision.
        metrics: The user's metrics by name.
        classification: Count right answers, instead of errors.
    """

    def __init__(
        self, feed: Feed, loss: nn.Module, world: World, conf: Conf, *, metrics: dict[str, Any], classification: bool
    ) -> None:
        self._feed, self._loss, self._world, self._precision = feed, loss, world, conf.precision
        self._classification = classification
        self._metrics = {name: metric.to(world.device) for name, metric in metrics.items()}
        rows_per_step = conf.eval_batch_size * world.size
        self._pass = Pass(
            rank=world.rank, world_size=world.size, global_batch_size=rows_per_step, seed=0, shuffle=False
        )

    @torch.no_grad()
    def run(self, model: nn.Module) -> dict[str, float]:
        """Return each metric over all rows of all ranks; leaves the model in evaluation mode."""
        model.eval()
        names = ("loss", "accuracy") if self._classification else ("loss", "mae", "mse")
        sums = torch.zeros(1 + len(names), dtype=torch.float64, device=self._world.device)
        for step in self._feed.steps(self._pass):
            if len(step.y) == 0:
                continue
            with autocast(self._precision, self._world.device):
                output = fit_target(model(step.x), step.y)
                loss = self._loss(output, step.y)
            rows = torch.full_like(sums[0], len(step.y))
            sums += torch.stack([rows, loss.double() * rows, *self._sums(output, step.y)])
            for metric in self._metrics.values():
                metric.update(output, step.y)
        num_rows, *totals = self._world.sum(sums).tolist()
        return {name: total / max(num_rows, 1) for name, total in zip(names, totals, strict=True)} | self._more()

    def num_own_rows(self) -> int | None:
        """Return the rows of this rank; None when only an evaluation itself can tell."""
        return self._feed.num_own_rows(self._pass)

    def _sums(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Return the sums over rows of what is counted beside the loss."""
        if self._classification:
            return [(output.argmax(1) == target).sum().double()]
        error = (output.double() - target.double()).reshape(len(target), -1)
        return [error.abs().mean(1).sum(), error.square().mean(1).sum()]

    def _more(self) -> dict[str, float]:
        """Return the user's metrics; torchmetrics exchanges their states between ranks itself."""
        found = {}
        for name, metric in self._metrics.items():
            value = torch.as_tensor(metric.compute())
            metric.reset()
            if value.numel() != 1:
                raise TrainingError(
                    f"trainer.metrics.{name} gives {value.numel()} numbers, not one.",
                    f"Try: trainer.metrics.{name}.average=macro",
                )
            found[name] = float(value)
        return found
