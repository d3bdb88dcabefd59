"""Metrics that all ranks decide by: without ``sync_dist`` Lightning keeps those of each rank apart."""

from __future__ import annotations

from collections.abc import Mapping
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

    def on(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of rank 0; every rank calls it at the same step."""
        if self._ranks.size == 1:
            return dict(metrics)
        sent: list[Any] = [dict(metrics)]
        dist.broadcast_object_list(sent, src=0, device=self._ranks.device, group=self._ranks.group)
        first: dict[str, float] = sent[0]
        differing = self._ranks.max([float(not _is_same(metrics.get(name), value)) for name, value in first.items()])
        names = [name for name, differs in zip(first, differing, strict=True) if differs]
        if names and not self._is_told:
            self._worker.notice(
                f"workers have different values of {', '.join(sorted(names))}: those of worker 0 are recorded and "
                "decide. Log them with sync_dist=True to get the mean over all workers."
            )
            self._is_told = True
        return first

    def on_schedules(self, module: pl.LightningModule) -> None:
        """Have schedules that watch a metric see that of rank 0: learning rates would drift apart."""
        if self._ranks.size == 1:
            return
        step = module.lr_scheduler_step

        def step_together(scheduler: Any, metric: Any) -> None:
            if metric is not None:
                metric = torch.as_tensor(metric, device=self._ranks.device).detach().clone()
                self._ranks.copy_from_first([metric])
            step(scheduler, metric)

        module.lr_scheduler_step = step_together  # type: ignore[method-assign]


def _is_same(one: float | None, other: float) -> bool:
    return one == other or (one != one and other != other)
