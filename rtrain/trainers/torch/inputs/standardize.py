"""Rows of a dataset as models of torch take them, whichever framework trains them."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import torch
from torch import Tensor

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.loops.auto import standardization, standardized


def as_tensor(values: np.ndarray) -> Tensor:
    """Return ``values`` as a tensor of the same memory."""
    if not values.flags.writeable:
        _let_torch_warn()
    return torch.from_numpy(values)


@cache
def _let_torch_warn() -> None:
    """Let torch warn unseen of arrays that are read-only, which it does once: nothing here writes to them."""
    values = np.zeros(1)
    values.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(values)


def target_tensor(values: np.ndarray) -> Tensor:
    """Return targets as losses take them: numbers are float32."""
    found = as_tensor(values)
    return found.float() if found.dtype == torch.float64 else found


class Standardizer:
    """Makes rows on one device what a model takes."""

    def __init__(self, info: DatasetInfo, device: torch.device) -> None:
        found = standardization(info)
        self._scale = None if found is None else tuple(torch.from_numpy(one).to(device) for one in found)

    def __call__(self, x: Tensor) -> Tensor:
        """Return tokens unchanged, other rows as float32: uint8 from 0 to 1, standardized."""
        if x.dtype == torch.int64:
            return x
        if x.dtype != torch.float64:
            x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        found: Tensor = standardized(x, self._scale).float()
        return found
