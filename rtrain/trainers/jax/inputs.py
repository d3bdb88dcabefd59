"""Rows as a Flax module takes them: float32, standardized, channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rtrain.datasets.base import Batch, DatasetInfo
from rtrain.trainers.loops.auto import standardization, standardized

NARROW = {"float64": "float32", "int64": "int32"}
"""JAX's types of half the width."""


def narrow(values: np.ndarray) -> np.ndarray:
    """Return values of a type that JAX computes with."""
    return values.astype(NARROW.get(values.dtype.name, values.dtype), copy=False)


class Inputs:
    """Makes rows of a dataset into what a model takes: first ``narrow``, then ``ready``, which JAX compiles.

    Rows of float64, which JAX doesn't compute with, are standardized before.
    """

    def __init__(self, info: DatasetInfo) -> None:
        scale, is_wide = standardization(info), info.dtype == "float64"
        self._wide_scale = scale if is_wide else None
        self._scale = None if is_wide else scale
        self._is_image = len(info.input_shape) == 3

    def narrow(self, x: np.ndarray) -> np.ndarray:
        """Return rows of a type that JAX computes with."""
        return narrow(standardized(x, self._wide_scale))

    def ready(self, x: Any) -> Any:
        """Return tokens unchanged, other rows as float32: uint8 from 0 to 1, standardized, (h, w, c) for images."""
        if jnp.issubdtype(x.dtype, jnp.signedinteger):
            return x
        x = x.astype(jnp.float32) / 255 if x.dtype == jnp.uint8 else x
        x = standardized(x, self._scale)
        return jnp.moveaxis(x, 1, -1) if self._is_image else x


def padded(batch: Batch, slots: int, inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, y and weight of ``slots`` rows: those of the batch, then copies of them that have no weight.

    With the same shapes at every step, nothing is compiled twice.
    """
    count = len(batch.y)
    weight = np.zeros(slots, "float32")
    weight[:count] = 1 if batch.weight is None else batch.weight
    x, y = inputs.narrow(batch.x), narrow(batch.y)
    if count == slots:
        return x, y, weight
    if count == 0:
        return np.zeros((slots, *x.shape[1:]), x.dtype), np.zeros((slots, *y.shape[1:]), y.dtype), weight
    rows = np.arange(slots) % count
    return x[rows], y[rows], weight


def real_rows(rows: Sequence[Any], num_rows: int | None, place: Any) -> Sequence[Any]:
    """Return x, y and weight without what ``padded`` added, in a function that is compiled once for each ``num_rows``.

    Args:
        rows: x, y and weight, and with ``num_rows`` also (rows,) bool: which ones were not added.
        num_rows: How many these are; None to leave all.
        place: The sharding of the rows, whose number it needs not divide.
    """
    if num_rows is None:
        return rows
    *columns, is_real = rows
    (kept,) = jnp.nonzero(is_real, size=num_rows)
    return [jax.lax.with_sharding_constraint(values[kept], place) for values in columns]
