"""JPEG files give the same pixels and the same errors whoever decodes them."""

import io

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

from rtrain.datasets.images import jpeg
from rtrain.datasets.images.pixels import decode
from rtrain.errors import DatasetError

simplejpeg = pytest.importorskip("simplejpeg")
PHOTOS = load_sample_images().images
SIZES = [None, (61, 83), (40, 40), (20, 31), (200, 300)]


def photo(number=0, mode="RGB", size=(97, 75), ending="JPEG", **keys):
    """Return the bytes of a photograph; of an odd size, which chroma subsampling has to round."""
    file = io.BytesIO()
    Image.fromarray(PHOTOS[number]).convert(mode).resize(size).save(file, ending, **keys)
    return file.getvalue()


def both(monkeypatch, content, size, channels):
    """Return what is decoded with simplejpeg and without, and how many images it decoded."""
    decoded = []
    reader = simplejpeg.decode_jpeg
    monkeypatch.setattr(simplejpeg, "decode_jpeg", lambda *args: (decoded.append(args), reader(*args))[1])
    first = decode(content, size, channels, "here")
    monkeypatch.setattr(jpeg, "find_simplejpeg", lambda: None)
    return first, decode(content, size, channels, "here"), len(decoded)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("mode", "keys"),
    [
        *(("RGB", {"quality": quality, "subsampling": part}) for quality in (30, 95) for part in (0, 1, 2)),
        ("RGB", {"progressive": True}),
        ("RGB", {"optimize": True, "restart_marker_blocks": 3}),
        ("L", {}),
    ],
    ids=str,
)
def test_pixels_are_the_same_to_the_last_bit(monkeypatch, mode, keys, size, channels):
    content = photo(mode=mode, **keys)
    first, second, num_decoded = both(monkeypatch, content, size, channels)
    np.testing.assert_array_equal(first, second)
    assert num_decoded == (size != (20, 31))  # that is less than half


@pytest.mark.parametrize("keys", [{"mode": "CMYK"}, {"keep_rgb": True}, {"ending": "PNG"}, {"ending": "WEBP"}], ids=str)
def test_pillow_decodes_what_both_would_read_differently(monkeypatch, keys):
    first, second, num_decoded = both(monkeypatch, photo(**keys), None, 3)
    np.testing.assert_array_equal(first, second)
    assert num_decoded == 0


def test_a_file_is_read_by_its_path(monkeypatch, tmp_path):
    for name, content in {"a.jpg": photo(), "b.jpg": photo(ending="PNG")}.items():
        (tmp_path / name).write_bytes(content)
        first, second, num_decoded = both(monkeypatch, str(tmp_path / name), (50, 60), 3)
        monkeypatch.undo()
        np.testing.assert_array_equal(first, second)
        assert num_decoded == (name == "a.jpg")


def test_pillow_judges_the_size_of_large_images(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(DatasetError, match=r"here: can't be read as an image .*decompression bomb"):
        decode(photo(), None, 3, "here")


@pytest.mark.parametrize("content", [photo()[:-300], photo()[:30], b"\xff\xd8\xff", b""])
def test_a_broken_file_has_the_same_error(monkeypatch, content):
    with pytest.raises(DatasetError) as first:
        decode(content, None, 3, "here")
    monkeypatch.setattr(jpeg, "find_simplejpeg", lambda: None)
    with pytest.raises(DatasetError) as second:
        decode(content, None, 3, "here")
    assert first.value.message == second.value.message
