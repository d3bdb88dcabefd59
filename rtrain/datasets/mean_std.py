"""Mean and standard deviation per channel or feature, gathered chunk by chunk."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rtrain.errors import DatasetError

log = logging.getLogger(__name__)

CHUNK_VALUES = 1 << 21
COARSE = 0.01
"""Part of the standard deviation that neighbours in float32 may differ by."""


class Moments:
    """Running mean and variance over axis 1 of ``x``; NaN is left out and uint8 counts as 0 to 1.

    Chunks are merged as in Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979).
    """

    def __init__(self) -> None:
        self._count: Any = 0.0
        self._mean: Any = 0.0
        self._squares: Any = 0.0
        self._num_values = 0

    def add(self, x: np.ndarray) -> None:
        """Take in the rows of ``x``: (rows, channels or features, ...), float or uint8; or (rows,) of single ones."""
        if x.dtype == "object":
            for row in x:
                self.add(row[None])
            return
        rows = max(1, CHUNK_VALUES // max(1, x[:1].size))
        self._num_values += x.size // max(1, x.shape[1])
        for start in range(0, len(x), rows):
            chunk = x[start : start + rows]
            self._merge(*(_of_bytes(chunk) if chunk.dtype == "uint8" else _of_floats(chunk)))

    def _merge(self, count: np.ndarray, mean: np.ndarray, squares: np.ndarray) -> None:
        total = self._count + count
        share = np.divide(count, total, out=np.zeros_like(mean), where=total > 0)
        delta = np.where(count > 0, mean - self._mean, 0.0)
        self._squares = self._squares + squares + delta**2 * self._count * share
        self._mean = self._mean + delta * share
        self._count = total

    def missing(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return which channels or features had NaN, by ``names`` if they have some."""
        return tuple(self.num_missing(names))

    def num_missing(self, names: Sequence[str] = ()) -> dict[str, int]:
        """Return how many NaN the channels or features had, of those that had some; by ``names`` as in ``missing``."""
        counts = self._count.tolist() if self._num_values else []
        lacking = {
            index: self._num_values - int(count) for index, count in enumerate(counts) if count < self._num_values
        }
        return {names[index] if names else f"feature {index}": count for index, count in lacking.items()}

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean per channel or feature; NaN where there was no value."""
        return tuple(np.where(self._count > 0, self._mean, np.nan).tolist())

    @property
    def std(self) -> tuple[float, ...]:
        """Standard deviation per channel or feature; 1 where all values are equal."""
        std = np.sqrt(self._squares / np.maximum(self._count, 1))
        return tuple(np.where(std > 1e-12 * np.maximum(np.abs(self._mean), 1e-300), std, 1.0).tolist())

    @property
    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation to scale by: 0 and 1 where there was no value."""
        return tuple(0.0 if math.isnan(value) else value for value in self.mean), self.std


def tell_of_empty(mean: Sequence[float], names: Sequence[str]) -> None:
    """Warn of features without any value in ``train``, whose mean is NaN."""
    empty = [name for name, value in zip(names, mean, strict=False) if math.isnan(value)]
    if empty:
        told = ", ".join(empty[:5]) + (", ..." if len(empty) > 5 else "")
        log.warning("no row of train has a value of %s; to drop it: 'dataset.drop=[%s]'", told, ",".join(empty))


def _of_floats(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1).astype(np.float64)
    present = ~np.isnan(values)
    count = present.sum(axis=1).astype(np.float64)
    mean = np.where(present, values, 0).sum(axis=1) / np.maximum(count, 1)
    return count, mean, np.where(present, (values - mean[:, None]) ** 2, 0).sum(axis=1)


def _of_bytes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    axes = (0, *range(2, x.ndim))
    wide = x.astype(np.uint16)
    total = wide.sum(axis=axes, dtype=np.uint64).astype(np.float64)
    squares = np.square(wide).sum(axis=axes, dtype=np.uint64).astype(np.float64)
    count = np.full(x.shape[1], x.size / x.shape[1])
    return count, total / count / 255, (squares - total**2 / count) / 255**2


def coarse(mean: Sequence[float], std: Sequence[float], names: Sequence[str]) -> list[str]:
    """Return the features whose neighbours in float32 are about as far apart as their values differ."""
    steps = np.spacing(np.abs(np.asarray(mean, np.float32)))
    places: list[int] = np.flatnonzero(steps > COARSE * np.asarray(std)).tolist()
    return [names[place] if names else f"feature {place}" for place in places]


def tell_of_digits(dtype: str, mean: Sequence[float], std: Sequence[float], names: Sequence[str], remedy: str) -> None:
    """Warn of features that lose their digits as float32; ``remedy`` says how to keep them."""
    found = coarse(mean, std, names) if dtype == "float32" else []
    if found:
        log.warning("float32 loses digits of %s; to keep all: %s", ", ".join(found[:5]), remedy)


def given_statistics(normalize: Any, num_channels: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return mean and std as the config gives them: empty for ``false``, None for ``true``.

    Raises:
        DatasetError: The config gives more or fewer numbers than there are channels or features.
    """
    if normalize is True:
        return None
    if normalize is False:
        return (), ()
    for key in ("mean", "std"):
        if len(normalize[key]) != num_channels:
            raise DatasetError(
                f"dataset.normalize.{key} has {len(normalize[key])} numbers, but the data has {num_channels} "
                "channels or features.",
                f"Give {num_channels} numbers, or normalize: true to use those of the train split.",
            )
    return tuple(map(float, normalize["mean"])), tuple(map(float, normalize["std"]))
