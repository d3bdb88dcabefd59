"""Metrics that all ranks decide by: without ``sync_dist`` Lightning keeps those of each rank apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import lightning.pytorch as pl
import torch
import torch.distributed as dist

from rtrain.trainers.torch_ranks import TorchRanks
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
        if self._ranks.size == 1:
            return dict(metrics)
        first: dict[str, float] = self._of_first(dict(metrics))
        differing = self._ranks.max([float(_differ(measured.get(name, value), value)) for name, value in first.items()])
        # Each worker trains on other rows, and nothing is expected of a single step.
        names = [name for name, one in zip(first, differing, strict=True) if one and not name.startswith("train/")]
        if names and not self._is_told:
            self._worker.notice(
                f"workers have different values of {', '.join(sorted(names))}: those of worker 0 are recorded and "
                "decide. Log them with sync_dist=True to get the mean over all workers."
            )
            self._is_told = True
        return first

    def on_schedules(self, trainer: pl.Trainer, resumed: Callable[[str], float | None]) -> None:
        """Have schedules that watch a metric see that of rank 0: learning rates would drift apart.

        Args:
            trainer: Lightning's.
            resumed: Returns the value of a metric in the checkpoint, by the module's name; Lightning keeps none there.
        """
        loop: Any = trainer.fit_loop.epoch_loop
        own = loop._get_monitor_value

        def value_of_rank_0(key: str) -> torch.Tensor | None:
            value = own(key)
            known = resumed(key) if value is None else float(value)
            # Objects, because a rank may not have logged the metric at all.
            first: float | None = known if self._ranks.size == 1 else self._of_first(known)
            return None if first is None else torch.tensor(first, dtype=torch.float64, device=self._ranks.device)

        loop._get_monitor_value = value_of_rank_0

    def _of_first(self, value: Any) -> Any:
        """Return what rank 0 has given."""
        sent = [value]
        dist.broadcast_object_list(sent, src=0, device=self._ranks.device, group=self._ranks.group)
        return sent[0]


def _differ(one: float, other: float) -> bool:
    return one != other and not (math.isnan(one) and math.isnan(other))
