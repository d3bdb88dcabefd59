"""Splits whose rows are read from files by their numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from rtrain.datasets.base import Batch, Columns, EpochPlan, Split, share_of, step_rows

CHUNK_BYTES = 64 << 20
"""Size of large rows that are in memory together where all are read in order."""


class MappedSplit(Split):
    """Rows that stay in files, which the operating system maps into memory, in the order of a ``ResidentSplit``.

    It is pickled without what starts with an underscore, the files it has opened: workers need them.
    """

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    def chunk_rows(self) -> int:
        """Rows that are in memory at a time where all are read in order."""
        return 1_000

    @abstractmethod
    def columns(self, rows: np.ndarray) -> Columns:
        """Return ``x`` and ``y`` of some rows of the split, by their numbers."""

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Yield this worker's batches of one pass; only its own rows are read."""
        for rows, num_global in step_rows(self.num_rows, plan):
            columns = self.columns(rows)
            yield Batch(columns["x"], columns["y"], num_global)

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield one contiguous part, some rows at a time."""
        low, high = share_of(self.num_rows, rank, world_size)
        for start in range(low, max(high, low + 1), self.chunk_rows):
            yield self.columns(np.arange(start, min(start + self.chunk_rows, high)))
