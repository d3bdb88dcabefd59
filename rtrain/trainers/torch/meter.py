"""Loss, rate and speed of training, measured without an exchange between ranks at every step."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from rtrain.errors import TrainingError
from rtrain.trainers.torch.data import Step
from rtrain.trainers.torch.state import TrainState
from rtrain.trainers.torch.world import World
from rtrain.trainers.worker import Worker

PROGRESS_SECONDS = 0.1
MAX_HELD = 1000
"""Steps whose losses stay on the device at most; looking at each at once would make a GPU wait."""
WAY_OUT = "Lower trainer.optimizer.lr, set trainer.clip_norm=1, or train with trainer.precision=fp32."


class Meter:
    """Loss and speed since the last look, and of the epoch."""

    def __init__(self, worker: Worker, world: World, state: TrainState, steps_per_epoch: int) -> None:
        self._worker, self._world, self._state = worker, world, state
        self._steps_per_epoch = steps_per_epoch
        self._losses: list[Tensor] = []
        """Sum of this rank's row losses, one per step since the last look."""
        self._rows = self._rows_shown = self._epoch_rows = 0
        self._loss_sum = self._window_rows = 0.0
        self._began = self._epoch_began = self._shown = time.monotonic()

    def add(self, loss: Tensor, step: Step) -> None:
        """Count one step; tell the display now and then."""
        self._losses.append(loss)
        self._rows += step.num_global
        self._rows_shown += step.num_global
        if len(self._losses) >= MAX_HELD:
            self.look()
        if time.monotonic() - self._shown >= PROGRESS_SECONDS:
            self._show()

    def _show(self) -> None:
        done, steps = self._state.progress, self._steps_per_epoch
        self._worker.progress(step=done.step, epoch=done.epoch, steps_per_epoch=steps, rows=self._rows_shown)
        self._shown, self._rows_shown = time.monotonic(), 0

    def look(self) -> None:
        """Add up the losses over all ranks; every rank calls it at the same step.

        Raises:
            TrainingError: The loss of a step is not a number; all ranks raise it and name that step.
        """
        if not self._losses:
            return
        losses = torch.stack(self._losses).tolist()
        total = float(self._world.sum([math.fsum(losses) if all(map(math.isfinite, losses)) else math.nan])[0])
        if not math.isfinite(total):
            self._fail(losses)
        progress = self._state.progress
        progress.loss_sum += total
        progress.rows += self._rows
        self._loss_sum += total
        self._window_rows += self._rows
        self._epoch_rows += self._rows
        self._losses, self._rows = [], 0

    def metrics(self) -> dict[str, float]:
        """Return loss, rate and speed since the last call, over all ranks; every rank calls it at the same step."""
        self.look()
        now = time.monotonic()
        found = {
            "train/loss": self._loss_sum / max(self._window_rows, 1),
            "train/lr": self._rate(),
            "train/rows_per_second": self._window_rows / max(now - self._began, 1e-9),
        }
        self._loss_sum = self._window_rows = 0.0
        self._began = now
        return found

    def epoch_metrics(self) -> dict[str, float]:
        """Return the mean loss of the epoch that ends, the rate, and the speed since training began this epoch."""
        self.look()
        self._show()
        progress = self._state.progress
        found = {
            "train/epoch_loss": progress.loss_sum / max(progress.rows, 1),
            "train/lr": self._rate(),
            "train/rows_per_second": self._epoch_rows / max(time.monotonic() - self._epoch_began, 1e-9),
        }
        progress.loss_sum, progress.rows = 0.0, 0
        return found

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the time of the block out of the speed."""
        before = time.monotonic()
        yield
        pause = time.monotonic() - before
        self._began += pause
        self._epoch_began += pause

    def _rate(self) -> float:
        return float(self._state.optimizer.param_groups[0]["lr"])

    def _fail(self, losses: list[float]) -> None:
        """Raise on every rank, naming the first step of all ranks whose loss is not a number."""
        last = self._state.progress.step
        bad = [last - len(losses) + 1 + index for index, loss in enumerate(losses) if not math.isfinite(loss)]
        first = -self._world.max([-float(bad[0]) if bad else -math.inf])[0]
        raise TrainingError(
            f"the training loss of step {first:.0f} is not a finite number.",
            WAY_OUT,
        )
