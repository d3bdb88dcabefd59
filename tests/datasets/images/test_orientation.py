"""Photos are turned as the camera was held, whatever format, decoder and source: they look as viewers show them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.ExifTags import Base

from rtrain.datasets.images import jpeg
from rtrain.datasets.images.pixels import decode, image_size

FORMATS = {"JPEG": {"quality": 95}, "PNG": {}, "WEBP": {"lossless": True}, "TIFF": {}}


def photo(kind, turned, size=(24, 40)):
    """Return the bytes of an image of different corners, (width, height) as it is stored."""
    width, height = size
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    image = Image.fromarray(np.stack([x, y, 255 - x], axis=-1).astype(np.uint8))
    exif = Image.Exif()
    if turned is not None:
        exif[Base.Orientation] = turned
    file = io.BytesIO()
    image.save(file, kind, exif=exif, **FORMATS[kind])
    return file.getvalue()


def shown(content):
    """Return what viewers show, (height, width, 3)."""
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB")).astype(int)


@pytest.mark.parametrize("turned", [None, *range(1, 9)])
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("fast", [True, False], ids=["simplejpeg", "Pillow"])
def test_an_image_looks_as_viewers_show_it(kind, turned, fast, tmp_path, monkeypatch):
    if not fast:
        monkeypatch.setattr(jpeg, "find_simplejpeg", lambda: None)
    content = photo(kind, turned)
    (tmp_path / "photo").write_bytes(content)
    wanted = shown(content)
    for given in (content, str(tmp_path / "photo")):
        assert image_size(given, "x") == wanted.shape[:2]
        found = decode(given, None, 3, "x")
        np.testing.assert_allclose(found.transpose(1, 2, 0), wanted, atol=2)
        small = decode(given, (wanted.shape[0] // 4, wanted.shape[1] // 4), 3, "x")
        corners = [(0, 0), (0, -1), (-1, 0), (-1, -1)]
        for row, column in corners:
            np.testing.assert_allclose(small[:, row, column], wanted[row, column], atol=40)


def test_a_number_that_exif_does_not_know_turns_nothing():
    for turned in (0, 9, 77):
        content = photo("JPEG", turned)
        assert decode(content, None, 1, "x").shape == (1, 40, 24)
