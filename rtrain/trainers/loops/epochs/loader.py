"""The rows of a split in steps that all ranks share, whatever the framework."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rtrain.datasets.base import Batch, DatasetInfo, EpochPlan, Split
from rtrain.errors import DatasetError
from rtrain.trainers.loops.collectives import Ranks
from rtrain.trainers.loops.tasks import PLACES


class BatchLoader:
    """One split."""

    def __init__(self, split: Split, info: DatasetInfo, ranks: Ranks) -> None:
        self._split, self._ranks, self._name = split, ranks, info.name
        places = info.input_shape[:1] if info.task in PLACES else ()
        y = np.zeros((0, *places), "int64" if info.num_classes else "float32")
        self._empty = Batch(np.zeros((0, *info.input_shape), info.dtype), y, 0)

    @property
    def num_rows(self) -> int:
        """Rows of the split, of all ranks together."""
        return self._split.num_rows

    def num_steps(self, rows_per_step: int) -> int:
        """Return the steps of one pass."""
        return math.ceil(self._split.num_rows / rows_per_step)

    def num_own_rows(self, one: EpochPlan) -> int:
        """Return the rows of this rank in a whole pass."""
        return one.layout.own_rows(one.rank, self._split.num_rows)

    def steps(self, one: EpochPlan) -> Iterator[Any]:
        """Yield the batches of one pass; a rank without rows gets empty ones while another one still has some.

        Raises:
            DatasetError: Rows have another type than the dataset's description says: bytes might pass for numbers.
        """
        for batch in self._split.batches(one):
            if batch.x.dtype != self._empty.x.dtype:
                raise DatasetError(
                    f"the rows of {self._name} are {batch.x.dtype}, but its description says {self._empty.x.dtype}.",
                    "The dataset's source has to give DatasetInfo.dtype as it is.",
                )
            yield batch


def slices(num_rows: int, parts: int) -> list[slice]:
    """Return the rows of each backward pass of a step, as evenly as possible; fewer than ``parts`` of fewer rows."""
    count = max(1, min(num_rows, parts))
    return [slice(place * num_rows // count, (place + 1) * num_rows // count) for place in range(count)]
