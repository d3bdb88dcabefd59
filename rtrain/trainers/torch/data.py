"""Rows on their way from a dataset's split to the model: on the device, in steps that all ranks share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

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


class Feed:
    """One split as tensors: held on the device when it is resident, sent there batch by batch when it is streamed."""

    def __init__(self, split: Split, info: DatasetInfo, world: World, channels_last: bool) -> None:
        self._split, self._world = split, world
        self._format = torch.channels_last if channels_last and len(info.input_shape) == 3 else None
        shape = (1, -1, *[1] * (len(info.input_shape) - 1))
        self._mean = torch.tensor(info.mean, device=world.device).reshape(shape) if info.mean else None
        self._std = torch.tensor(info.std, device=world.device).reshape(shape) if info.mean else None
        self._x: Tensor | None = None
        if isinstance(split, ResidentSplit):
            self._hold(split)

    def _hold(self, split: ResidentSplit) -> None:
        x = self._to_device(split.columns["x"])
        # Float rows are brought into shape once; uint8 rows stay small and are converted batch by batch.
        self._x = x if x.dtype == torch.uint8 else self._ready(x)
        self._y = self._to_device(split.columns["y"])

    def num_steps(self, rows_per_step: int) -> int:
        """Return the steps of one pass."""
        return math.ceil(self._split.num_rows / rows_per_step)

    def steps(self, one: Pass) -> Iterator[Step]:
        """Yield the steps of one pass; a rank without rows gets empty tensors while another one still has some."""
        if self._x is None:
            yield from self._streamed(one)
            return
        assert isinstance(self._split, ResidentSplit)
        for rows, num_global in self._split.indices(one):
            index = torch.from_numpy(rows).to(self._world.device)
            x = self._x[index]
            yield Step(x if x.is_floating_point() else self._ready(x), self._y[index], num_global)

    def _streamed(self, one: Pass) -> Iterator[Step]:
        batches = iter(self._split.batches(one))
        empty = None
        while True:
            batch = next(batches, None)
            there = 0 if batch is None else len(batch.y)
            num_global = there if self._world.size == 1 else int(self._world.sum([there])[0])
            if num_global == 0:
                return
            if batch is not None:
                step = Step(self._ready(self._to_device(batch.x)), self._to_device(batch.y), num_global)
                empty = Step(step.x[:0], step.y[:0], 0)
                yield step
            else:
                assert empty is not None, "a rank without a single row can't take part in training"
                yield Step(empty.x, empty.y, num_global)

    def _to_device(self, values: np.ndarray) -> Tensor:
        # Arrays from shared memory are read-only, which torch does not accept.
        own = values if values.flags.writeable else values.copy()
        return torch.from_numpy(own).to(self._world.device)

    def _ready(self, x: Tensor) -> Tensor:
        """Return float rows: uint8 from 0 to 1, then standardized, in the memory format of the model."""
        if x.dtype == torch.uint8:
            x = x.float() / 255
        if self._mean is not None:
            x = (x - self._mean) / self._std
        return x if self._format is None else x.contiguous(memory_format=self._format)
