"""Image files of many sizes, in a folder per class."""

from __future__ import annotations

import numpy as np
from PIL import Image


def write_images(folder, num_rows=90, seed=0):
    """Write bright and dark JPEG images of many sizes into two class folders; return their pixels by file."""
    draw = np.random.default_rng(seed)
    found = {}
    for row in range(num_rows):
        name = ("dark", "light")[row % 2]
        height, width = draw.integers(7, 40, 2)
        values = draw.integers(0, 160, (height, width, 3)) + 90 * (row % 2)
        file = folder / name / f"{row:04}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values.astype(np.uint8)).save(file)
        found[str(file)] = np.asarray(Image.open(file)).transpose(2, 0, 1)
    return found
