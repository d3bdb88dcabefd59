"""The rows of a split in steps that all ranks share, whatever the framework."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rtrain.datasets.base import Batch, DatasetInfo, EpochPlan, Split
from rtrain.errors import DatasetError


class BatchLoader:
    """One split."""

    def __init__(self, split: Split, info: DatasetInfo) -> None:
        self._split, self._name, self._dtype = split, info.name, info.dtype
        self._keeps_sizes = info.original_sizes

    @property
    def num_rows(self) -> int:
        """Rows of the split, of all ranks together."""
        return self._split.num_rows

    def num_steps(self, rows_per_step: int) -> int:
        """Return the steps of one pass."""
        return math.ceil(self._split.num_rows / rows_per_step)

    def num_own_rows(self, plan: EpochPlan) -> int:
        """Return the rows of this rank in a whole pass."""
        return plan.layout.own_rows(plan.rank, self._split.num_rows)

    def steps(self, plan: EpochPlan) -> Iterator[Any]:
        """Yield the steps of one pass; a rank without rows gets empty ones while another one still has some.

        Raises:
            DatasetError: Rows have another type than the dataset's description says: bytes might pass for numbers.
        """
        for batch in self._split.batches(plan):
            yield self.step(self.as_described(batch))

    def step(self, batch: Batch) -> Any:
        """Return a batch as the model takes it."""
        return batch

    def as_described(self, batch: Batch) -> Batch:
        """Return the batch, whose rows have the type that the dataset's description says; see ``steps``."""
        if batch.x.dtype != self._dtype and not (self._keeps_sizes and batch.x.dtype == "object"):
            raise DatasetError(
                f"the rows of {self._name} are {batch.x.dtype}, but DatasetInfo.dtype is {self._dtype}.",
                "The dataset's source must set DatasetInfo.dtype to the type of its rows.",
            )
        return batch


def slices(num_rows: int, parts: int) -> list[slice]:
    """Return the rows of each backward pass of a step, as evenly as possible; fewer than ``parts`` of fewer rows."""
    count = max(1, min(num_rows, parts))
    return [slice(place * num_rows // count, (place + 1) * num_rows // count) for place in range(count)]
