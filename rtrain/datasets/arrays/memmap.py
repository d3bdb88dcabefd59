"""Splits whose inputs stay in a .npy file that the operating system maps into memory, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rtrain.datasets.base import Columns
from rtrain.datasets.on_disk.mapped_split import CHUNK_BYTES, MappedSplit


@dataclass
class MappedArrays(MappedSplit):
    """Rows of a .npy file."""

    path: str
    rows: np.ndarray
    """(rows,) which rows of the file."""
    y: np.ndarray
    """(rows,) their targets."""

    def __post_init__(self) -> None:
        self.num_rows = len(self.rows)

    @cached_property
    def _inputs(self) -> np.ndarray:
        found: np.ndarray = np.load(self.path, mmap_mode="r")
        return found

    def x(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of these rows of the split as trainers take them."""

        from rtrain.datasets.arrays.load import Arrays, inputs

        if not len(rows):
            return inputs(Arrays(where=self.path, x=self._inputs[:1], y=None), self._dtype)[:0]
        return np.ascontiguousarray(
            inputs(Arrays(where=self.path, x=self._inputs[self.rows[rows]], y=None), self._dtype)
        )

    @property
    def _dtype(self) -> str | None:
        """Of numbers other than images: whole numbers of many digits become float64, whichever a batch has."""
        kind = self._inputs.dtype
        wide = kind.kind in "iu" and not np.can_cast(kind, np.float32)
        return "float64" if wide or kind == np.float64 else "float32"

    def columns(self, rows: np.ndarray) -> Columns:
        """Return the inputs and targets of these rows of the split."""
        return {"x": self.x(rows), "y": self.y[rows]}

    @property
    def chunk_rows(self) -> int:
        """As many rows as take ``CHUNK_BYTES``."""
        return max(1, CHUNK_BYTES // max(1, self._inputs[:1].nbytes))
