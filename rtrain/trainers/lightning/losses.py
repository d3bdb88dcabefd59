"""Check the losses and gradients of a LightningModule for non-finite ones before they take effect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lightning.pytorch as pl
import torch

from rtrain.trainers.loops.epochs.meter import MAX_HELD
from rtrain.trainers.loops.epochs.progress import EpochProgress
from rtrain.trainers.loops.not_finite import NotFiniteError, check_any_taken, skip_step
from rtrain.trainers.torch.optimization.finite import are_finite
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.worker import Worker

HINT = "Lower the learning rate of the module, or check the data for extreme values."


class Losses(pl.Callback):
    """Fails at such a loss, or skips the step of such a loss or gradient, as ``run.failure.nan_loss`` says.

    A step is skipped by removing its gradients: without them, the optimizers of torch do nothing. If no step is to be
    skipped, losses stay on the device until they are checked, because each check waits for the device.
    """

    def __init__(self, worker: Worker, ranks: TorchRanks, progress: EpochProgress) -> None:
        self._worker, self._ranks, self._progress = worker, ranks, progress
        self._skips = worker.run.failure.nan_loss == "skip"
        self._batch = 0
        self._held: list[tuple[int, int, int, torch.Tensor]] = []
        """Step, epoch, batch and loss of each backward pass since the last look."""
        self._buffers: list[torch.Tensor] = []
        """Batch statistics and the like, as they were before the step under way."""

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Note the batch; the first one of a step finds the statistics that may have to come back."""
        self._batch = batch_idx + 1
        if not self._held:
            self._remember(pl_module)

    def on_before_backward(self, trainer: pl.Trainer, pl_module: pl.LightningModule, loss: torch.Tensor) -> None:
        """Hold a loss."""
        self._held.append((trainer.global_step + 1, trainer.current_epoch, self._batch, loss.detach()))
        if len(self._held) >= MAX_HELD and not self._skips:
            self.look()

    def on_before_optimizer_step(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Leave the step out, on all ranks, if a loss of one of them or a gradient is not finite."""
        if not self._skips or not self._held:
            return
        # Mixed precision leaves out steps whose scaled gradients overflow itself.
        scaled = getattr(trainer.precision_plugin, "scaler", None) is not None
        every = (one.grad for group in optimizer.param_groups for one in group["params"])
        bad = self._first_bad([] if scaled else [gradient for gradient in every if gradient is not None])
        if bad is None:
            self._progress.skipped_in_a_row = 0
        else:
            self._leave_out(pl_module, optimizer, bad)
        self._held.clear()
        self._remember(pl_module)

    def _leave_out(self, module: pl.LightningModule, optimizer: torch.optim.Optimizer, bad: int) -> None:
        """Take the gradients away, bring batch statistics back, and note the batch."""
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, before in zip(module.buffers(), self._buffers, strict=True):
                buffer.copy_(before)
        step, _, batch, _ = self._held[bad]
        skip_step(self._worker, self._progress, step, batch, HINT)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Fail if every step was left out."""
        check_any_taken(self._progress, trainer.global_step, HINT)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Evaluate nothing that is spoilt."""
        self.look()

    def look(self) -> None:
        """Check the losses since the last check; every rank calls it at the same step.

        Raises:
            NotFiniteError: A loss of any rank is not finite, and such steps are not skipped; names the step.
        """
        if self._skips or not self._held:
            return
        bad = self._first_bad()
        if bad is not None:
            step, epoch, batch, _ = self._held[bad]
            raise NotFiniteError.of_loss(step, epoch, batch, HINT)
        self._held.clear()

    def _first_bad(self, gradients: Sequence[torch.Tensor] = ()) -> int | None:
        """Return the place of the first loss that is not finite on any rank, or of the last one if a gradient is not.

        All ranks hold as many losses.
        """
        losses = torch.stack([loss.float().mean() for *_, loss in self._held]).tolist()
        own = next((place for place, loss in enumerate(losses) if not math.isfinite(loss)), len(losses))
        if own == len(losses) and not are_finite(gradients):
            own -= 1
        first = -int(self._ranks.max([-own])[0])
        return first if first < len(losses) else None

    def _remember(self, module: pl.LightningModule) -> None:
        if self._skips:
            self._buffers = [buffer.detach().clone() for buffer in module.buffers()]
