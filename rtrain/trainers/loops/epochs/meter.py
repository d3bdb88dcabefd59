"""Loss, rate and speed of training, looked at now and then only: a look waits for the device."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rtrain.trainers.loops.epochs.learner import Learner
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.not_finite import NotFiniteError, check_any_taken, skip_step
from rtrain.trainers.worker import Worker

PROGRESS_SECONDS = 0.1
MAX_HELD = 1000
"""Steps whose losses stay on the device at most."""


class Meter:
    """Loss and speed since the last look, and of the epoch."""

    def __init__(self, worker: Worker, learner: Learner, progress: EpochProgress, steps_per_epoch: int) -> None:
        self._worker, self._learner, self._progress = worker, learner, progress
        self._steps_per_epoch = steps_per_epoch
        self._taken: list[Any] = []
        """What the steps since the last look gave."""
        self._rows: list[int] = []
        """Rows of each of them."""
        self._rows_shown = self._window_rows = self._epoch_rows = 0
        self._began = self._epoch_began = self._shown = time.monotonic()

    def add(self, taken: Any, num_rows: int) -> None:
        """Count one step of all ranks; tell the display now and then."""
        self._taken.append(taken)
        self._rows.append(num_rows)
        self._rows_shown += num_rows
        if len(self._taken) >= MAX_HELD:
            self.look()
        if time.monotonic() - self._shown >= PROGRESS_SECONDS:
            self._show()

    def look(self) -> None:
        """Add up the losses of the steps since the last look; every rank calls it at the same step.

        Raises:
            NotFiniteError: The loss of a step is not a number, and such steps are not left out; names the step.
            TrainingError: Too many steps in a row were left out.
        """
        if not self._taken:
            return
        losses, progress = self._learner.step_losses(self._taken), self._progress
        for back, (loss, _) in zip(range(len(losses) - 1, -1, -1), losses, strict=True):
            if math.isfinite(loss):
                progress.skipped_in_a_row = 0
            else:
                self._note_bad(progress.step - back, progress.step_in_epoch - back)
        total = math.fsum(loss for loss, _ in losses if math.isfinite(loss))
        counted = math.fsum(weight for loss, weight in losses if math.isfinite(loss))
        rows = sum(self._rows)
        progress.loss_sum += total
        progress.loss_weight += counted
        progress.rows += rows
        progress.window_loss_sum += total
        progress.window_weight += counted
        self._window_rows += rows
        self._epoch_rows += rows
        self._taken, self._rows = [], []

    def _note_bad(self, step: int, batch: int) -> None:
        """Fail, or note that a step was left out."""
        if self._worker.run.failure.nan_loss != "skip":
            raise NotFiniteError.of_loss(step, self._progress.epoch, batch, self._learner.hint)
        skip_step(self._worker, self._progress, step, batch, self._learner.hint)

    def check_any_taken(self) -> None:
        """Fail if every step of the training was left out."""
        self.look()
        check_any_taken(self._progress, self._progress.step, self._learner.hint)

    def metrics(self) -> dict[str, float]:
        """Return loss, rate and speed since the last call, over all ranks."""
        self.look()
        progress = self._progress
        found = self._found("train/loss", progress.window_loss_sum, progress.window_weight)
        found["train/rows_per_second"] = self._window_rows / max(time.monotonic() - self._began, 1e-9)
        progress.window_loss_sum, progress.window_weight, self._window_rows = 0.0, 0.0, 0
        self._began = time.monotonic()
        return found

    def epoch_metrics(self) -> dict[str, float]:
        """Return the mean loss of the epoch that ends, the rate, and the speed since training began this epoch."""
        self.look()
        self._show()
        progress = self._progress
        found = self._found("train/epoch_loss", progress.loss_sum, progress.loss_weight)
        found["train/rows_per_second"] = self._epoch_rows / max(time.monotonic() - self._epoch_began, 1e-9)
        progress.loss_sum, progress.loss_weight, progress.rows = 0.0, 0.0, 0
        progress.window_loss_sum, progress.window_weight = 0.0, 0.0
        return found

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the time of the block out of the speed."""
        before = time.monotonic()
        yield
        pause = time.monotonic() - before
        self._began += pause
        self._epoch_began += pause

    def _found(self, name: str, loss_sum: float, weight: float) -> dict[str, float]:
        mean = loss_sum / weight if weight else None
        found = {name: mean, "train/lr": self._learner.learning_rate()}
        return {name: value for name, value in found.items() if value is not None}

    def _show(self) -> None:
        done, steps = self._progress, self._steps_per_epoch
        self._worker.progress(step=done.step, epoch=done.epoch, steps_per_epoch=steps, rows=self._rows_shown)
        self._shown, self._rows_shown = time.monotonic(), 0
