"""Schedules that watch a metric: the end of an epoch updates them once, by the value of rank 0, also when resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl
import torch

from rtrain.trainers.lightning.metrics.agreement import Agreement
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker


class Schedules:
    """Updates them before the checkpoint of an epoch is written; Lightning would do so later, or not after a resume."""

    def __init__(self, worker: Worker, ranks: TorchRanks, agreement: Agreement) -> None:
        self._worker, self._ranks, self._agreement = worker, ranks, agreement
        self._update: Callable[[str, bool], None] = lambda interval, update_plateau_schedulers: None
        self._began_inside = False

    def take_over(self, trainer: pl.Trainer, resumed: Callable[[str], float | None], *, inside: bool) -> None:
        """Have schedules see the metrics of rank 0, or learning rates would drift apart, and epochs end here.

        Args:
            trainer: Lightning's.
            resumed: Returns the value of a metric in the checkpoint, by the module's name; Lightning keeps none there.
            inside: Training continues in the middle of an epoch.
        """
        loop: Any = trainer.fit_loop.epoch_loop
        own, self._update, self._began_inside = loop._get_monitor_value, loop.update_lr_schedulers, inside

        def value_of_rank_0(key: str) -> torch.Tensor | None:
            value = own(key)
            # A rank may not have logged the metric at all.
            first = self._agreement.first(resumed(key) if value is None else float(value))
            return None if first is None else torch.tensor(first, dtype=torch.float64, device=self._ranks.device)

        def update(interval: str, update_plateau_schedulers: bool) -> None:
            if interval == "step" or not update_plateau_schedulers:
                self._update(interval, update_plateau_schedulers)

        loop._get_monitor_value, loop.update_lr_schedulers = value_of_rank_0, update

    def end_epoch(self, trainer: pl.Trainer) -> None:
        """Update the schedules that watch a metric, and tell which saw the rest of an epoch only."""
        logged = trainer._logger_connector.metrics["callback"]
        watched = {one.monitor for one in trainer.lr_scheduler_configs if one.reduce_on_plateau}
        if self._began_inside and (partly := sorted(name for name in watched if name in logged)):
            self._worker.notice(
                f"a schedule watches {', '.join(partly)} of training: in the resumed epoch, that is the mean over its "
                "rest, and the learning rate may differ from an uninterrupted run."
            )
        self._began_inside = False
        self._update("epoch", True)
