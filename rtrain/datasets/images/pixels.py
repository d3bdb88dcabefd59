"""Pixels of encoded images as bytes, grey or red, green and blue: the one place where images are decoded."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.Image import DecompressionBombError, Resampling

from rtrain.datasets.images.jpeg import decode_jpeg
from rtrain.datasets.images.orientation import SIDEWAYS, UPRIGHT, orientation
from rtrain.errors import DatasetError

WIDE = "I;16"
"""How Pillow's names of 16-bit grey begin: 0 to 65535."""
UNBOUNDED = {"I": "32-bit integers", "F": "32-bit floats"}
"""Pillow's modes whose values have no agreed black and white."""
STEP = 257
"""From one byte to the next in 16 bits: 65535 / 255."""


def decode(content: str | bytes, size: tuple[int, int] | None, channels: int, where: str) -> np.ndarray:
    """Return an image, (channels, height, width) uint8, from the bytes of a file or its path; see ``pixels``.

    Raises:
        DatasetError: It is not an image, or broken, or of a kind that bytes can't show.
    """
    with named(where):
        found = decode_jpeg(content, size, channels)
        if found is not None:
            fits = size in (None, found.shape[:2])
            return _channels_first(found) if fits else _values(Image.fromarray(found), size)
        with _opened(content) as image:
            turned = orientation(image)
            stored = image.size if size is None else size if turned in SIDEWAYS else size[::-1]
            image.draft(_mode(channels), stored)
            upright = image if turned == UPRIGHT else ImageOps.exif_transpose(image)
            return pixels(upright, size, channels, where)


def pixels(image: Image.Image, size: tuple[int, int] | None, channels: int, where: str) -> np.ndarray:
    """Return the pixels of an image, (channels, height, width) uint8.

    16-bit grey is scaled from 0 to 65535 to 0 to 255; alpha is dropped; palettes are looked up.

    Args:
        image: As Pillow opened it.
        size: Height and width to resize it to; None: its own.
        channels: 1: grey; 3: red, green and blue.
        where: Its file or row, for messages.

    Raises:
        DatasetError: It is a broken one, or its values have no agreed black and white.
    """
    with named(where):
        return _values(_as(_mode(channels), _bytes(image, where)), size)


def _values(image: Image.Image, size: tuple[int, int] | None) -> np.ndarray:
    """Return the values of a grey or coloured image, resized."""
    if size is not None and image.size != size[::-1]:
        image = image.resize(size[::-1], Resampling.BILINEAR)
    return _channels_first(np.asarray(image))


def _channels_first(values: np.ndarray) -> np.ndarray:
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def image_size(content: str | bytes, where: str) -> tuple[int, int]:
    """Return height and width of an image, upright.

    Raises:
        DatasetError: It is none.
    """
    with named(where), _opened(content) as image:
        is_sideways = orientation(image) in SIDEWAYS and image.format != "TIFF"  # whose size Pillow has turned already
        return image.size if is_sideways else (image.height, image.width)


def _bytes(image: Image.Image, where: str) -> Image.Image:
    """Return the image with a byte per value."""
    # Of greymaps, Pillow gives more than 8 bits as 32-bit integers, scaled to 16 bits.
    is_wide = image.mode.startswith(WIDE) or (image.mode == "I" and image.format == "PPM")
    if is_wide:
        values = np.asarray(image).astype(np.uint32)
        return Image.fromarray(((values + STEP // 2) // STEP).astype(np.uint8))
    if image.mode in UNBOUNDED:
        raise DatasetError(
            f"{where}: the image contains {UNBOUNDED[image.mode]}, which can't be scaled to pixel values of 0 to 255.",
            "Convert it to 8 or 16 bits, or give its values as an array: dataset=numpy",
        )
    unmultiplied = image.convert(image.mode.upper()) if image.mode in ("La", "RGBa") else image
    return unmultiplied if image.mode in ("1", "L", "P") else _as("RGB", unmultiplied)


def _as(mode: str, image: Image.Image) -> Image.Image:
    """Return the image in a mode of Pillow, whose own conversion copies one that has it already."""
    return image if image.mode == mode else image.convert(mode)


def _mode(channels: int) -> str:
    return "L" if channels == 1 else "RGB"


def _opened(content: str | bytes) -> Image.Image:
    return Image.open(io.BytesIO(content) if isinstance(content, bytes) else content)


@contextmanager
def named(where: str) -> Iterator[None]:
    """Let what Pillow raises in the block name the image.

    Raises:
        DatasetError: It did.
    """
    try:
        yield
    # What Pillow raises for broken files depends on the format.
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, DecompressionBombError) as error:
        # Pillow's own words name an object in memory where the bytes of a file are given.
        why = "no known kind of image" if isinstance(error, UnidentifiedImageError) else error
        raise DatasetError(f"{where}: can't be read as an image ({why}).", "Remove or replace the file.") from error
