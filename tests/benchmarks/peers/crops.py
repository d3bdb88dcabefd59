"""What both sides of the benchmark of images do to a row."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate

SIZE = 224


def random_crop(row: Tensor) -> Tensor:
    """Return a random part of an image, at least a quarter of it, in a fixed size and maybe mirrored."""
    part, top, left, flip = torch.rand(4).tolist()
    height, width = (max(1, int(side * (0.5 + part / 2))) for side in row.shape[1:])
    y, x = int(top * (row.shape[1] - height + 1)), int(left * (row.shape[2] - width + 1))
    crop = row[None, :, y : y + height, x : x + width]
    found = interpolate(crop, (SIZE, SIZE), mode="bilinear", antialias=True)[0]
    return found.flip(2) if flip < 0.5 else found
