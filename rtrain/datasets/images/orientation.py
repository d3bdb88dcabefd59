"""How a camera was held, as EXIF says it: images are turned so that they look as viewers show them."""

from __future__ import annotations

import io

from PIL import Image
from PIL.ExifTags import Base

UPRIGHT, SIDEWAYS = 1, (5, 6, 7, 8)
"""Orientations: that of an image that is stored as it looks, and those that exchange height and width."""
NOTES, PIXELS = b"Exif\0\0", 0xDA
"""How the notes of a camera begin, and the marker of the segment of a JPEG file that they come before."""


def orientation(image: Image.Image) -> int:
    """Return EXIF's number for how an image is stored."""
    found = image.getexif().get(Base.Orientation, UPRIGHT)
    return found if isinstance(found, int) else UPRIGHT


def is_upright(jpeg: bytes) -> bool:
    """Return whether a JPEG file is stored as it looks; most have no notes, which costs next to nothing to see."""
    if not _has_notes(jpeg):
        return True
    with Image.open(io.BytesIO(jpeg)) as image:
        return orientation(image) == UPRIGHT


def _has_notes(jpeg: bytes) -> bool:
    """Walk the segments of a JPEG file: two bytes of a marker and two of a length each, as ITU T.81 has them."""
    at = 2
    while jpeg[at : at + 1] == b"\xff" and jpeg[at + 1 : at + 2] not in (b"", bytes([PIXELS])):
        if jpeg[at + 4 : at + 4 + len(NOTES)] == NOTES:
            return True
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4])
    return False
