"""The training loss of an optimizer step, which may take several batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from rtrain.trainers.torch.ranks import TorchRanks


class StepLoss:
    """The mean over the rows of all ranks, in all batches of the step."""

    def __init__(self, ranks: TorchRanks) -> None:
        self._ranks = ranks
        self._held: list[tuple[torch.Tensor, float]] = []
        """Loss and weight of each batch of the step under way; they stay on the device until they are read."""

    def add(self, outputs: Any, weight: float, parts: int) -> None:
        """Hold the loss of a batch, if it has one.

        Args:
            outputs: What Lightning makes of what ``training_step`` returns.
            weight: Rows of this rank in the batch; 1 for each where they are not known.
            parts: Batches of a step, by which Lightning has divided the loss.
        """
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, torch.Tensor):
            self._held.append((loss.detach() * parts if parts > 1 else loss.detach(), weight))

    def mean(self) -> dict[str, float]:
        """Return ``train/loss``, or nothing if a loss is not a number or none was held; every rank calls it."""
        total = math.fsum(float(loss) * weight for loss, weight in self._held)
        total, weight = self._ranks.sum([total, math.fsum(weight for _, weight in self._held)])
        return {"train/loss": total / weight} if weight and math.isfinite(total) else {}

    def clear(self) -> None:
        """Begin the next step."""
        self._held.clear()
