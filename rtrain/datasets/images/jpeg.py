"""JPEG files decoded by simplejpeg, where it is installed: the pixels are Pillow's, in less time."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rtrain.datasets.images.orientation import is_upright

COLORS = {1: "GRAY", 3: "RGB"}
PLAIN = ("YCbCr", "Gray")
"""What a file may hold for both to make the same of it; Pillow knows more kinds."""
BEGINNING = b"\xff\xd8\xff"
REDUCED = 2
"""How often a smaller size has to fit into an image for Pillow to decode half of its height and width or less."""


def decode_jpeg(content: str | bytes, size: tuple[int, int] | None, channels: int) -> np.ndarray | None:
    """Return an image at its own size, (height, width, 3) or (height, width) uint8; None where Pillow has to decode it.

    That is where simplejpeg is not installed or can't read it, and where Pillow decodes less than all of a large image.

    Args:
        content: The bytes of a file of any kind, or its path.
        size: Height and width that the image will be resized to; None: its own.
        channels: 1 or 3.
    """
    reader = find_simplejpeg()
    data = b"" if reader is None else _jpeg(content)
    if not data:
        return None
    try:
        if not is_upright(data):
            return None
        height, width, kind, _ = reader.decode_jpeg_header(data)
        times = 1 if size is None else min(height // size[0], width // size[1])
        if kind not in PLAIN or times >= REDUCED or height * width > (Image.MAX_IMAGE_PIXELS or 0):
            return None
        found: np.ndarray = reader.decode_jpeg(data, COLORS[channels])
    except (ValueError, OSError, SyntaxError):  # broken: Pillow says how
        return None
    return found[..., 0] if channels == 1 else found


def _jpeg(content: str | bytes) -> bytes:
    """Return the bytes of a file; none of one that isn't a JPEG."""
    if isinstance(content, bytes):
        return content if content.startswith(BEGINNING) else b""
    with Path(content).open("rb") as file:
        return BEGINNING + file.read() if file.read(len(BEGINNING)) == BEGINNING else b""


@cache
def find_simplejpeg() -> Any:
    """Return the module, or None."""
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg
