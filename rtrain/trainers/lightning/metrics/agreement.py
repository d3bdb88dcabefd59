"""Metrics that all ranks decide by: without ``sync_dist`` Lightning keeps those of each rank apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch.distributed as dist

from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker


class Agreement:
    """Gives every rank the metrics of rank 0, so that all ranks decide alike; says once which metrics differ."""

    def __init__(self, worker: Worker, ranks: TorchRanks) -> None:
        self._worker, self._ranks = worker, ranks
        self._is_told = False

    def on(self, metrics: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of rank 0; every rank calls it at the same step.

        Args:
            metrics: The newest value of each.
            measured: Those that this rank has just evaluated.
        """
        first: dict[str, float] = self.first(dict(metrics))
        if self._ranks.size == 1:
            return first
        differing = self._ranks.max([float(_differ(measured.get(name, value), value)) for name, value in first.items()])
        # Each worker trains on other rows, and nothing is expected of a single step.
        names = [name for name, one in zip(first, differing, strict=True) if one and not name.startswith("train/")]
        if names and not self._is_told:
            self._worker.notice(
                f"workers have different values of {', '.join(sorted(names))}: only those of worker 0 are recorded "
                "and used. Log them with sync_dist=True to get the mean over all workers."
            )
            self._is_told = True
        return first

    def first(self, value: Any) -> Any:
        """Return what rank 0 has given; every rank calls it."""
        if self._ranks.size == 1:
            return value
        sent = [value]
        dist.broadcast_object_list(sent, src=0, device=self._ranks.device, group=self._ranks.group)
        return sent[0]


def _differ(one: float, other: float) -> bool:
    return one != other and not (math.isnan(one) and math.isnan(other))
