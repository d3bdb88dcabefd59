"""The rows of a split in steps that all ranks share, whatever the framework."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rtrain.datasets.base import Batch, DatasetInfo, Pass, ResidentSplit, Split
from rtrain.errors import DatasetError
from rtrain.trainers.ranks import Ranks
from rtrain.trainers.tasks import PLACES


class Feed:
    """One split."""

    def __init__(self, split: Split, info: DatasetInfo, ranks: Ranks) -> None:
        self._split, self._ranks, self._name = split, ranks, info.name
        places = info.input_shape[:1] if info.task in PLACES else ()
        y = np.zeros((0, *places), "int64" if info.num_classes else "float32")
        self._empty = Batch(np.zeros((0, *info.input_shape), info.dtype), y, 0)
        self._streamed_rows: int | None = None

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

    def steps(self, one: Pass) -> Iterator[Any]:
        """Yield the batches of one pass; a rank without rows gets empty ones while another one still has some.

        Raises:
            DatasetError: Rows have another type than the dataset's description says: bytes might pass for numbers.
        """
        resident = isinstance(self._split, ResidentSplit)
        for batch in self._split.batches(one) if resident else self._streamed(one):
            if batch.x.dtype != self._empty.x.dtype:
                raise DatasetError(
                    f"the rows of {self._name} are {batch.x.dtype}, but its description says {self._empty.x.dtype}.",
                    "The dataset's source has to give DatasetInfo.dtype as it is.",
                )
            yield batch

    def _streamed(self, one: Pass) -> Iterator[Batch]:
        """Go on until no rank has rows; one small exchange per step tells how many all of them have."""
        batches = iter(self._split.batches(one))
        rows = 0
        while True:
            batch = next(batches, self._empty)
            rows += len(batch.y)
            num_global = int(self._ranks.sum([len(batch.y)])[0])
            if num_global == 0:
                self._streamed_rows = None if one.skip_steps else rows
                return
            yield replace(batch, num_global=num_global)
