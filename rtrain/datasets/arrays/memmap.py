"""Splits whose inputs stay in a .npy file that the operating system maps into memory, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rtrain.datasets.base import Batch, Columns, EpochPlan, Split, share_of, step_rows
from rtrain.datasets.mean_std import Moments

if TYPE_CHECKING:
    import numpy as np

CHUNK_BYTES = 64 << 20
"""Number of inputs per read where rows are read in order."""


@dataclass
class MappedSplit(Split):
    """Rows of a .npy file, in the order of a ``ResidentSplit``; pickled without them, so that workers need the file."""

    path: str
    rows: np.ndarray
    """(rows,) which rows of the file."""
    y: np.ndarray
    """(rows,) their targets."""

    def __post_init__(self) -> None:
        self.num_rows = len(self.rows)

    @cached_property
    def _inputs(self) -> np.ndarray:
        import numpy as np

        found: np.ndarray = np.load(self.path, mmap_mode="r")
        return found

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_inputs"}

    def x(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of these rows of the split as trainers take them."""
        import numpy as np

        from rtrain.datasets.arrays.load import Arrays, inputs

        if not len(rows):
            return inputs(Arrays(where=self.path, x=self._inputs[:1], y=None), self._dtype)[:0]
        return np.ascontiguousarray(
            inputs(Arrays(where=self.path, x=self._inputs[self.rows[rows]], y=None), self._dtype)
        )

    @property
    def _dtype(self) -> str | None:
        """Of numbers other than images: whole numbers of many digits become float64, whichever a batch has."""
        import numpy as np

        kind = self._inputs.dtype
        wide = kind.kind in "iu" and not np.can_cast(kind, np.float32)
        return "float64" if wide or kind == np.float64 else "float32"

    def batches(self, plan: EpochPlan) -> Iterator[Batch]:
        """Yield this worker's batches of one pass; only its own rows are read."""
        for rows, num_global in step_rows(self.num_rows, plan):
            yield Batch(self.x(rows), self.y[rows], num_global)

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield one contiguous part, some rows at a time."""
        import numpy as np

        low, high = share_of(self.num_rows, rank, world_size)
        step = max(1, CHUNK_BYTES // max(1, self._inputs[:1].nbytes))
        for start in range(low, max(high, low + 1), step):
            rows = np.arange(start, min(start + step, high))
            yield {"x": self.x(rows), "y": self.y[rows]}

    def moments(self, max_rows: int) -> Moments:
        """Return mean and standard deviation of ``max_rows`` rows, evenly spread."""
        import numpy as np

        moments = Moments()
        step = max(1, CHUNK_BYTES // max(1, self._inputs[:1].nbytes))
        chosen = np.arange(0, self.num_rows, max(1, -(-self.num_rows // max_rows)))
        for start in range(0, len(chosen), step):
            moments.add(self.x(chosen[start : start + step]))
        return moments
