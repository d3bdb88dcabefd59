"""Evaluate a model on a split: every row of every rank counts once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rtrain.datasets.base import Pass
from rtrain.trainers.torch.data import Feed
from rtrain.trainers.torch.world import World


def fit_target(output: Tensor, target: Tensor) -> Tensor:
    """Drop the last axis of a single output, so that (rows, 1) meets a target of (rows,)."""
    return output.squeeze(-1) if output.ndim == target.ndim + 1 and output.shape[-1] == 1 else output


class Evaluation:
    """The metrics of a split: the loss, accuracy or absolute error, and torchmetrics of the user's choice."""

    def __init__(self, feed: Feed, loss: nn.Module, world: World, batch_size: int, metrics: dict[str, Any]) -> None:
        self._feed, self._loss, self._world = feed, loss, world
        self._metrics = {name: metric.to(world.device) for name, metric in metrics.items()}
        self._pass = Pass(
            rank=world.rank, world_size=world.size, global_batch_size=batch_size * world.size, seed=0, shuffle=False
        )

    @torch.no_grad()
    def run(self, model: nn.Module) -> dict[str, float]:
        """Return each metric over all rows of all ranks; leaves the model in evaluation mode."""
        model.eval()
        sums = torch.zeros(3, dtype=torch.float64, device=self._world.device)
        classes = True
        for step in self._feed.steps(self._pass):
            if len(step.y) == 0:
                continue
            output = fit_target(model(step.x), step.y)
            classes = not step.y.is_floating_point()
            mean = getattr(self._loss, "reduction", "mean") != "sum"
            loss = self._loss(output, step.y).double() * (len(step.y) if mean else 1)
            hits = (output.argmax(1) == step.y).sum() if classes else (output - step.y).abs().sum()
            sums += torch.stack(
                [loss, hits.double(), torch.tensor(len(step.y), dtype=torch.float64, device=loss.device)]
            )
            for metric in self._metrics.values():
                metric.update(output, step.y)
        total, hits_of_all, rows = self._world.sum(sums).tolist()
        found = {"loss": total / rows, "accuracy" if classes else "mae": hits_of_all / rows}
        return {**found, **self._more()}

    def _more(self) -> dict[str, float]:
        """Return the user's metrics; torchmetrics exchanges their states between ranks itself."""
        found = {name: float(metric.compute()) for name, metric in self._metrics.items()}
        for metric in self._metrics.values():
            metric.reset()
        return found
