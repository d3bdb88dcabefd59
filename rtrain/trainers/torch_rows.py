"""Rows of a dataset as models of torch take them, whichever framework trains them."""

from __future__ import annotations

import torch
from torch import Tensor

from rtrain.datasets.base import DatasetInfo
from rtrain.trainers.from_dataset import standardization, standardized


class Standardizer:
    """Makes rows on one device what a model takes."""

    def __init__(self, info: DatasetInfo, device: torch.device) -> None:
        found = standardization(info)
        self._scale = None if found is None else tuple(torch.from_numpy(one).to(device) for one in found)

    def __call__(self, x: Tensor) -> Tensor:
        """Return tokens unchanged, other rows as float32: uint8 from 0 to 1, standardized."""
        if x.dtype == torch.int64:
            return x
        found: Tensor = standardized(x.float() / 255 if x.dtype == torch.uint8 else x.float(), self._scale)
        return found
