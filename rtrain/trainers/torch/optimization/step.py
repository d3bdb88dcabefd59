"""One optimizer step: the gradient over the rows of all ranks, and what moves on with it."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from rtrain.config.did_you_mean import to_try
from rtrain.config.run_conf import FailureConf
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import TrainingError
from rtrain.trainers.loops.not_finite import NotFiniteError
from rtrain.trainers.torch.checkpoint.state import TrainState
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.evaluation import autocast
from rtrain.trainers.torch.inputs.batch_sizes import single_row
from rtrain.trainers.torch.inputs.loader import Step
from rtrain.trainers.torch.losses.of_tasks import (
    check_output,
    counts,
    fit_output,
    is_mean_of_rows,
    is_of_torch,
    sum_over_rows,
)
from rtrain.trainers.torch.optimization.frozen import Frozen
from rtrain.trainers.torch.optimization.schedule import steps_done
from rtrain.trainers.torch.strategies.base import Strategy


class OptimizerStep:
    """Takes optimizer steps.

    Args:
        conf: Precision, clipping and accumulation.
        info: The dataset.
        strategy: How the ranks share the step; they take it together.
        state: What a step changes.
        loss: Mean over rows.
        schedule_length: How often the schedule moves on at most, where that is known.
        failure: Whether to leave out a step whose loss or gradients are not finite.
    """

    def __init__(
        self,
        conf: Conf,
        info: DatasetInfo,
        strategy: Strategy,
        state: TrainState,
        loss: nn.Module,
        schedule_length: int | None,
        *,
        failure: FailureConf,
    ) -> None:
        self.conf, self.info, self.strategy, self.state, self.loss = conf, info, strategy, state, loss
        self.schedule_length, self.failure = schedule_length, failure
        self.skips, self.num_overflows = failure.nan_loss == "skip", 0
        self.ranks = strategy.data
        is_whole = self.ranks.size == 1 and conf.accumulate_steps == 1
        self.is_known_loss = is_whole or is_of_torch(loss)
        self.checks_output = is_of_torch(loss)
        self._frozen = Frozen(state.model)
        self.wrapped = strategy.wrap(state)

    def take(self, step: Step) -> tuple[Tensor, float]:
        """Do one optimizer step; return the sum of this rank's row losses, NaN if it was left out, and of all weights.

        The gradient is that of the mean over all rows of all ranks: each part's mean loss is weighted by its share of
        the rows, because strategies average gradients over ranks whatever rows they had.
        """
        step = self._scaled(step)
        before = [buffer.clone() for buffer in self.state.model.buffers()] if self.skips else []
        total = self._backward(step) if self.conf.accumulate_steps == 1 else self._backward_in_parts(step)
        self._frozen.check(self.state.optimizer if self.strategy.ranks.size == 1 else None)
        if self.skips and not math.isfinite(self.ranks.sum(total.reshape(1))[0]):
            self.state.optimizer.zero_grad(set_to_none=True)
        elif self.strategy.update(self.state, skips=self.skips):
            self.num_overflows = 0
            self._move_on()
            return step.unscaled(total), step.counted
        elif self.state.scaler.is_enabled():
            self._count_overflow()
            return step.unscaled(total), step.counted
        for buffer, kept in zip(self.state.model.buffers(), before, strict=True):
            buffer.copy_(kept)
        return torch.full_like(total, math.nan), step.counted

    def _scaled(self, step: Step) -> Step:
        """Return the step with the sum of what the rows of all ranks count, where they don't count alike.

        A loss that divides by what its rows count would do so for each rank and part of the step apart.
        """
        if getattr(self.loss, "reduction", "mean") != "none":
            return step
        counted = counts(self.loss, step.y.flatten())
        if counted is None:
            return step
        total = sum_over_rows(counted.double(), len(step.y), step.weight) if len(step.y) else counted.sum()
        return replace(step, weight_sum=self.ranks.sum(total.reshape(1))[0])

    def _count_overflow(self) -> None:
        """Fail if no scale of the loss makes the gradients finite; single steps that overflow are part of fp16."""
        self.num_overflows += 1
        if self.num_overflows >= self.failure.max_skipped_steps:
            raise NotFiniteError(
                f"the gradients of {self.num_overflows} steps in a row are not finite, however small their fp16 scale.",
                to_try("trainer.precision=bf16"),
            )

    def _backward_in_parts(self, step: Step) -> Tensor:
        """Go through the rows in ``accumulate_steps`` parts; ranks exchange gradients at the last one only."""
        total = torch.zeros((), device=self.ranks.device)
        parts = self.conf.accumulate_steps
        xs, ys = torch.tensor_split(step.x, parts), torch.tensor_split(step.y, parts)
        weights = [None] * parts if step.weight is None else torch.tensor_split(step.weight, parts)
        for number, (x, y, weight) in enumerate(zip(xs, ys, weights, strict=True), start=1):
            with self.strategy.hold() if number < parts else contextlib.nullcontext():
                total += self._backward(replace(step, x=x, y=y, weight=weight))
        return total

    def _backward(self, step: Step) -> Tensor:
        num_rows = len(step.y)
        if num_rows == 0:
            return self._backward_without_rows(step.x)
        with self._autocast():
            output, target = fit_output(self._forward(step.x), step.y)
            if self.checks_output:
                check_output(output, target, self.info)
            self._check_loss(output, target)
            loss: Tensor = self.loss(output, target)
        if loss.ndim == 0 and step.weight is None and step.weight_scale == 1.0:
            # The mean of rows is the loss as it is where they are all rows of the step: no product needs a gradient.
            share = num_rows * self.ranks.size / step.num_global
            self.strategy.backward(self.state, loss if share == 1.0 else loss * share)
            return loss.detach().float() * num_rows
        with self._autocast():
            row_losses = sum_over_rows(loss, num_rows, step.weight) * step.weight_scale
        self.strategy.backward(self.state, row_losses * (self.ranks.size / step.num_global))
        return row_losses.detach().float()

    def _forward(self, x: Tensor) -> object:
        try:
            return self.wrapped(x)
        except ValueError as error:
            if len(x) > 1:
                raise
            raise single_row(error, self.conf, self.info.num_rows["train"], self.ranks.size) from error

    def _backward_without_rows(self, x: Tensor) -> Tensor:
        """Take part in the exchange of gradients with zeros; batch statistics are left alone."""
        if not self.conf.sync_batchnorm:
            # Shared batch statistics need the empty rows of this rank in training mode; all else needs one row.
            self.wrapped.eval()
            x = x.new_zeros((1, *x.shape[1:]))
        with self._autocast():
            output = self.wrapped(x)
        self.strategy.backward(self.state, output.sum() * 0)
        self.wrapped.train()
        return torch.zeros((), device=self.ranks.device)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self.conf.precision == "fp32":
            return contextlib.nullcontext()
        return autocast(self.conf.precision, self.ranks.device)

    def _check_loss(self, output: Tensor, target: Tensor) -> None:
        """Find once, for several workers or parts, a loss of the user's that is not a mean over rows."""
        if self.is_known_loss or len(target) < 3:
            return
        self.is_known_loss = True
        if not is_mean_of_rows(self.loss, output, target):
            raise TrainingError(
                f"trainer.loss: the {type(self.loss).__name__} of {len(target)} rows is not the mean of the losses of "
                "its parts: several workers, or trainer.accumulate_steps, would train differently than one step of "
                "all rows.",
                "Use num_workers=1 and trainer.accumulate_steps=1, or a custom trainer.train_loop.",
            )

    def _move_on(self) -> None:
        """Move schedule and average on, after the weights."""
        state = self.state
        if self.conf.scheduler_interval == "step":
            self.move_schedule()
        if state.ema is not None:
            state.ema.update_parameters(state.model)

    def move_schedule(self) -> None:
        """Move the schedule on, except one that watches a metric: that one moves with evaluations."""
        scheduler = self.state.scheduler
        if scheduler is None or isinstance(scheduler, ReduceLROnPlateau):
            return
        # A streamed epoch can have more steps than were foreseen, and some schedules raise beyond their last one.
        if self.schedule_length is None or steps_done(scheduler) < self.schedule_length:
            scheduler.step()
