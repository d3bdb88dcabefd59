"""Rows on their way from a dataset's split to the model: on the device, in steps that all ranks share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rtrain.datasets.base import DatasetInfo, Pass, ResidentSplit, Split
from rtrain.trainers.torch.world import World


@dataclass(frozen=True)
class Step:
    """The rows of this rank in one step of all ranks."""

    x: Tensor
    y: Tensor
    num_global: int
    """Rows of all ranks together."""
    weight: Tensor | None = None
    """(rows,) float32, where the train split has weights."""
    weight_scale: float = 1.0
    """What brings the mean weight of all ranks' rows to 1."""


class Inputs:
    """Makes rows of a dataset into what a model takes: on the device, float32 and standardized; tokens as they are."""

    def __init__(self, info: DatasetInfo, device: torch.device, channels_last: bool) -> None:
        self._device = device
        self._format = torch.channels_last if channels_last and len(info.input_shape) == 3 else None
        shape = (1, -1, *[1] * (len(info.input_shape) - 1))
        self._mean = torch.tensor(info.mean, device=device).reshape(shape) if info.mean else None
        self._std = torch.tensor(info.std, device=device).reshape(shape) if info.mean else None

    def place(self, values: np.ndarray) -> Tensor:
        """Return ``values`` on the device, without a copy where the device is the CPU."""
        with warnings.catch_warnings():
            # Arrays in shared memory are read-only, of which torch warns; nothing here writes to them.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(values).to(self._device)

    def ready(self, x: Tensor) -> Tensor:
        """Return tokens unchanged, other rows as float32: uint8 from 0 to 1, standardized, in the model's format."""
        if x.dtype == torch.int64:
            return x
        x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        if self._mean is not None and self._std is not None:
            x = (x - self._mean) / self._std
        return x if self._format is None else x.contiguous(memory_format=self._format)


class Feed:
    """One split as tensors: held on the device when it is resident, sent there batch by batch when it is streamed."""

    def __init__(self, split: Split, info: DatasetInfo, world: World, channels_last: bool) -> None:
        self._split, self._world = split, world
        self._inputs = Inputs(info, world.device, channels_last)
        self._empty = torch.from_numpy(np.zeros((0, *info.input_shape), info.dtype)), torch.zeros(0)
        self._weighted = "weight" in info.columns
        self._x: Tensor | None = None
        self._streamed_rows: int | None = None
        if isinstance(split, ResidentSplit):
            self._hold(split)

    def _hold(self, split: ResidentSplit) -> None:
        x = self._inputs.place(split.columns["x"])
        # Float rows are brought into shape once; uint8 rows stay small and are converted batch by batch.
        self._x = x if x.dtype == torch.uint8 else self._inputs.ready(x)
        self._y = self._inputs.place(split.columns["y"])
        weight = split.columns.get("weight") if self._weighted else None
        self._weight = None if weight is None else self._inputs.place(weight)

    @property
    def num_rows(self) -> int:
        """Rows of the split, of all ranks together."""
        return self._split.num_rows

    def num_steps(self, rows_per_step: int) -> int:
        """Return the steps of one pass; a guess where workers get their rows from Ray Data."""
        return math.ceil(self._split.num_rows / rows_per_step)

    def num_own_rows(self, one: Pass) -> int | None:
        """Return the rows of this rank in a whole pass; of a stream, those of the last one, or None before it."""
        if not isinstance(self._split, ResidentSplit):
            return self._streamed_rows
        return sum(len(rows) for rows, _ in self._split.indices(replace(one, skip_steps=0)))

    def steps(self, one: Pass) -> Iterator[Step]:
        """Yield the steps of one pass; a rank without rows gets empty tensors while another one still has some."""
        if self._x is None:
            yield from self._streamed(one)
            return
        assert isinstance(self._split, ResidentSplit)
        for rows, num_global in self._split.indices(one):
            index = torch.from_numpy(rows).to(self._world.device)
            x = self._x.index_select(0, index)
            x = self._inputs.ready(x) if x.dtype == torch.uint8 else x
            step = Step(x, self._y.index_select(0, index), num_global)
            yield step if self._weight is None else self._with_weight(step, self._weight.index_select(0, index))

    def _with_weight(self, step: Step, weight: Tensor) -> Step:
        total = weight.sum(dtype=torch.float64).reshape(1)
        total = total if self._world.size == 1 else self._world.sum(total)
        return replace(step, weight=weight, weight_scale=step.num_global / max(float(total), 1e-30))

    def _streamed(self, one: Pass) -> Iterator[Step]:
        """Go on until no rank has rows; one small exchange per step tells how many all of them have."""
        batches = iter(self._split.batches(one))
        rows = 0
        while True:
            batch = next(batches, None)
            num_own = 0 if batch is None else len(batch.y)
            rows += num_own
            num_global = num_own if self._world.size == 1 else int(self._world.sum([num_own])[0])
            if num_global == 0:
                self._streamed_rows = None if one.skip_steps else rows
                return
            if batch is None:
                x, y = (part.to(self._world.device) for part in self._empty)
            else:
                x, y = self._inputs.place(batch.x), self._inputs.place(batch.y)
            step = Step(self._inputs.ready(x), y, num_global)
            if self._weighted:
                weight = None if batch is None else batch.weight
                step = self._with_weight(step, torch.ones(num_own) if weight is None else self._inputs.place(weight))
            yield step
