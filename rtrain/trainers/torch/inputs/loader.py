"""Rows on their way from a dataset's split to the model: on the device, in steps that all ranks share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rtrain.datasets.base import Batch, DatasetInfo, EpochPlan, ResidentSplit, Split
from rtrain.trainers.loops.epochs.loader import BatchLoader
from rtrain.trainers.loops.tasks import TINY
from rtrain.trainers.torch.inputs.standardize import Standardizer, as_tensor, target_tensor
from rtrain.trainers.torch.ranks import TorchRanks

GPU_SHARE = 0.25
"""Part of a GPU's free memory that rows may take: the rest is for activations and the state of the optimizer."""
STANDARDIZED_ONCE_BYTES = 16 * 2**20
"""Rows of a split that take no more are standardized for all passes; each worker then has its own copy."""


@dataclass(frozen=True)
class Step:
    """The rows of this rank in one step of all ranks."""

    x: Tensor
    y: Tensor
    num_global: int
    """Rows of all ranks together."""
    weight: Tensor | None = None
    """(rows,) float32, where the train split has weights."""
    weight_sum: float | None = None
    """Sum of the weights of all ranks' rows; None: each counts 1."""

    @property
    def counted(self) -> float:
        """What counts in the loss of the step: its rows, or their weights."""
        return float(self.num_global) if self.weight_sum is None else self.weight_sum

    @property
    def weight_scale(self) -> float:
        """What brings the mean weight of all ranks' rows to 1."""
        return self.num_global / max(self.counted, TINY)

    def unscaled(self, losses: Tensor) -> Tensor:
        """Return row losses without that scale: by their weights as they are."""
        return losses if self.weight_sum is None else losses * (self.counted / self.num_global)


class Inputs:
    """Makes rows of a dataset into what a model takes: on the device, float32 and standardized; tokens as they are."""

    def __init__(self, info: DatasetInfo, device: torch.device, channels_last: bool) -> None:
        self._device = device
        self._format = torch.channels_last if channels_last and len(info.input_shape) == 3 else None
        self.standardized = Standardizer(info, device)

    def place(self, values: np.ndarray | Tensor) -> Tensor:
        """Return ``values`` on the device, without a copy where the device is the CPU.

        A GPU takes them from pinned memory when it gets there: this process does not wait until then.
        """
        found = values if isinstance(values, Tensor) else as_tensor(values)
        if self._device.type == "cuda" and found.device.type == "cpu":
            return found.pin_memory().to(self._device, non_blocking=True)
        return found.to(self._device)

    def held(self, values: np.ndarray) -> Tensor:
        """Return rows for all passes: on the device if they leave it enough memory, else where they are."""
        found = as_tensor(values)
        return found.to(self._device) if fits_on(self._device, values.nbytes) else found

    def ready(self, x: Tensor) -> Tensor:
        """Return rows standardized, in the model's memory format."""
        return self.formatted(self.standardized(x))

    def formatted(self, x: Tensor) -> Tensor:
        """Return standardized rows in the model's memory format."""
        return x if self._format is None else x.contiguous(memory_format=self._format)


def fits_on(device: torch.device, num_bytes: int) -> bool:
    """Return whether rows may lie on a device: on a GPU they take a part of its free memory only."""
    return device.type != "cuda" or num_bytes <= torch.cuda.mem_get_info(device)[0] * GPU_SHARE


class TensorLoader(BatchLoader):
    """One split as tensors, standardized batch by batch.

    Resident rows stay in the memory that all workers of a machine share; on a GPU they lie if they fit there.
    """

    def __init__(self, split: Split, info: DatasetInfo, ranks: TorchRanks, channels_last: bool) -> None:
        super().__init__(split, info)
        self._ranks = ranks
        self._inputs = Inputs(info, ranks.device, channels_last)
        self._weighted = "weight" in info.columns
        self._x: Tensor | None = None
        if isinstance(split, ResidentSplit):
            self._hold(split)

    def _hold(self, split: ResidentSplit) -> None:
        x = self._inputs.held(split.columns["x"])
        is_small = x.numel() * 4 <= STANDARDIZED_ONCE_BYTES and x.device == self._ranks.device
        self._x, self._ready = (
            (self._inputs.standardized(x), self._inputs.formatted) if is_small else (x, self._inputs.ready)
        )
        self._y = self._inputs.place(target_tensor(split.columns["y"]))
        weight = split.columns.get("weight") if self._weighted else None
        self._weight = None if weight is None else self._inputs.place(weight)

    def num_own_rows(self, plan: EpochPlan) -> int:
        """Return the rows of this rank in a whole pass; none where another rank has the same ones and counts them."""
        return super().num_own_rows(plan) if self._ranks.counts else 0

    def steps(self, plan: EpochPlan) -> Iterator[Step]:
        """Yield the steps of one pass; a rank without rows gets empty tensors while another one still has some."""
        return super().steps(plan) if self._x is None else self._held_steps(self._x, plan)

    def _held_steps(self, held: Tensor, plan: EpochPlan) -> Iterator[Step]:
        assert isinstance(self._split, ResidentSplit)
        for rows, num_global in self._split.indices(plan):
            own = torch.from_numpy(rows)
            index = self._inputs.place(own)
            x = held.index_select(0, index if held.device == index.device else own)
            step = Step(self._ready(self._inputs.place(x)), self._y.index_select(0, index), num_global)
            yield step if self._weight is None else self._with_weight(step, self._weight.index_select(0, index))

    def step(self, batch: Batch, x: Tensor | None = None) -> Step:
        """Return a batch on the device, with ``x`` in place of its inputs if given."""
        y, weight = self._inputs.place(target_tensor(batch.y)), batch.weight
        x = self._inputs.place(batch.x if x is None else x)
        step = Step(self._inputs.ready(x), y, batch.num_global)
        if not self._weighted:
            return step
        ones = torch.ones(len(y), device=y.device)
        return self._with_weight(step, ones if weight is None else self._inputs.place(weight))

    def _with_weight(self, step: Step, weight: Tensor) -> Step:
        total = self._ranks.sum(weight.sum(dtype=torch.float64).reshape(1))[0]
        return replace(step, weight=weight, weight_sum=total)
