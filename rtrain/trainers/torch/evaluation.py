"""Evaluate a model on a split: every row of every rank counts once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from rtrain.config.did_you_mean import to_try
from rtrain.errors import TrainingError
from rtrain.trainers.loops.tasks import TINY, derived_metrics, mean_names
from rtrain.trainers.torch.inputs.loader import Step
from rtrain.trainers.torch.losses.of_tasks import (
    counts,
    fit_output,
    is_mean_of_rows,
    is_of_torch,
    row_metrics,
    sum_over_rows,
)
from rtrain.trainers.torch.ranks import TorchRanks

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Return a context in which models compute in ``precision``."""
    if device.type == "meta":  # there is nothing to compute
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision], enabled=precision != "fp32")


class Evaluator:
    """The metrics of a split: the loss, accuracy or errors, and torchmetrics of the user's choice.

    Args:
        loss: Mean over rows.
        ranks: Those with their own rows; they evaluate together.
        precision: Of the forward pass.
        metrics: The user's metrics by name.
        task: Decides what is counted in addition to the loss.
        notice: Shows the user a line.
    """

    def __init__(
        self,
        loss: nn.Module,
        ranks: TorchRanks,
        precision: str,
        *,
        metrics: dict[str, Any],
        task: str,
        notice: Callable[[str], None],
    ) -> None:
        self._loss, self._ranks, self._precision, self._task = loss, ranks, precision, task
        self._notice, self._is_known_loss = notice, is_of_torch(loss)
        self._metrics = {name: metric.to(ranks.device) for name, metric in metrics.items()}

    @torch.no_grad()
    def run(self, model: nn.Module, steps: Iterable[Step]) -> dict[str, float]:
        """Return each metric over all rows of all ranks; leaves the model in evaluation mode."""
        model.eval()
        names = mean_names(self._task)
        sums = torch.zeros(2 + len(names), dtype=torch.float64, device=self._ranks.device)
        for number, step in enumerate(steps):
            if len(step.y) == 0:
                # A sharded model gathers its weights on all ranks together, also where one has no rows.
                model(step.x.new_zeros((1, *step.x.shape[1:])))
                continue
            with autocast(self._precision, self._ranks.device):
                output, target = fit_output(model(step.x), step.y)
                loss = self._loss(output, target)
            if number > 0:
                self._check_loss(output, target)
            ones = torch.ones(len(step.y), dtype=torch.float64, device=self._ranks.device)
            divisor = counts(self._loss, target) if loss.ndim else None
            divisors = [ones, ones if divisor is None else divisor.double()]
            counted = [*divisors, loss.double(), *row_metrics(self._task, output, target)]
            sums += torch.stack([sum_over_rows(values, len(step.y), step.weight) for values in counted])
            for metric in self._metrics.values():
                metric.update(output, target)
        num_rows, loss_rows, *totals = self._ranks.sum(sums)
        means = {name: total / max(num_rows, TINY) for name, total in zip(names, totals, strict=True)}
        means["loss"] = totals[0] / max(loss_rows, TINY)
        return derived_metrics(self._task, means) | self._more()

    def _check_loss(self, output: Tensor, target: Tensor) -> None:
        """Show one notice if the user's loss is not a mean over rows, where there are several batches."""
        if self._is_known_loss or len(target) < 3:
            return
        self._is_known_loss = True
        if not is_mean_of_rows(self._loss, output, target):
            self._notice(
                f"trainer.loss: the {type(self._loss).__name__} of {len(target)} rows is not the mean of that of its "
                "parts, so that the loss of an evaluation depends on trainer.eval_batch_size. Set it to the number "
                "of rows of the split, with num_workers=1, for the loss of all rows together"
            )

    def _more(self) -> dict[str, float]:
        """Return the user's metrics; torchmetrics exchanges their states between ranks itself."""
        found = {}
        for name, metric in self._metrics.items():
            if self._ranks.size > 1:
                give_types(metric)
            value = _as_number(metric.compute(), name)
            metric.reset()
            if value.numel() != 1:
                averages = "average" in inspect.signature(type(metric)).parameters
                raise TrainingError(
                    f"trainer.metrics.{name} returns {value.numel()} numbers, not one.",
                    to_try(f"trainer.metrics.{name}.average=macro")
                    if averages
                    else "Choose a metric that is one number.",
                )
            found[name] = float(value)
        return found


def _as_number(value: Any, name: str) -> Tensor:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(value).__name__
        raise TrainingError(f"trainer.metrics.{name} returns a {kind}, not a number.") from error


def give_types(metric: Any) -> None:
    """Give a rank that had no rows the types and shapes of what others have listed; all ranks call it.

    A metric of torchmetrics exchanges its lists as they are, and tensors of two types end the process.
    """
    every = metric.modules() if isinstance(metric, nn.Module) else ()
    named = [(one, name) for one in every for name, usual in getattr(one, "_defaults", {}).items() if usual == []]
    if not named:
        return
    own = [next(iter(getattr(one, name)), None) for one, name in named]
    of_ranks: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, [None if first is None else first[:0].cpu() for first in own])
    for place, (one, name) in enumerate(named):
        empty = next((known[place] for known in of_ranks if known[place] is not None), None)
        if own[place] is None and empty is not None:
            setattr(one, name, [empty.to(one.device)])
