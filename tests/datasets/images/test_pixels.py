"""Every kind of image, from every source that decodes images: its values are kept, or it is refused by name."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
from PIL import Image
from record_files import example, write_records

from rtrain.datasets.images.pixels import decode, pixels
from rtrain.errors import DatasetError

RAMP = (np.arange(256).reshape(16, 16)).astype(np.uint8)
WIDE = (np.arange(256).reshape(16, 16) * 257).astype(np.uint16)
GREY = np.stack([RAMP] * 3)
COLOURS = np.stack([RAMP, RAMP[::-1], RAMP.T])


def colours(mode):
    return Image.fromarray(np.ascontiguousarray(COLOURS.transpose(1, 2, 0))).convert(mode)


def palette():
    image = Image.fromarray(RAMP, "P")
    image.putpalette([255 - value // 3 for value in range(768)])
    return image


def wide(mode):
    return Image.frombytes(mode, (16, 16), WIDE.astype("<u2" if mode == "I;16" else ">u2").tobytes())


def with_alpha(image, mode):
    found = image.convert(mode)
    found.putalpha(Image.fromarray(np.full((16, 16), 200, np.uint8)))
    return found


KEPT = {
    "1": (Image.fromarray(RAMP > 100), "png", np.stack([(RAMP > 100) * 255] * 3)),
    "L": (Image.fromarray(RAMP), "png", GREY),
    "L-tiff": (Image.fromarray(RAMP), "tiff", GREY),
    "LA": (with_alpha(Image.fromarray(RAMP), "LA"), "png", GREY),
    "P": (palette(), "png", 255 - (RAMP[None].astype(int) * 3 + np.arange(3)[:, None, None]) // 3),
    "RGB": (colours("RGB"), "png", COLOURS),
    "RGBA": (with_alpha(colours("RGB"), "RGBA"), "png", COLOURS),
    "RGBX": (colours("RGBX"), "tiff", COLOURS),
    "CMYK": (colours("CMYK"), "tiff", COLOURS),
    "I;16-png": (wide("I;16"), "png", GREY),
    "I;16-tiff": (wide("I;16"), "tiff", GREY),
    "I;16B": (wide("I;16B"), "tiff", GREY),
    "I-pgm": (Image.fromarray(WIDE.astype(np.int32)), "ppm", GREY),
}
REFUSED = {
    "I": (Image.fromarray(WIDE.astype(np.int32)), "tiff"),
    "F": (Image.fromarray(RAMP.astype(np.float32)), "tiff"),
    "F-0-to-1": (Image.fromarray(RAMP.astype(np.float32) / 255), "tiff"),
}


def encoded(image, ending):
    stream = io.BytesIO()
    image.save(stream, ending)
    return stream.getvalue()


def in_folders(folder, content, ending):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / f"some.{ending}").write_bytes(content)
    return "images", folder


def in_shard(folder, content, ending):
    with tarfile.open(folder / "some.tar", "w") as shard:
        for name, part in (
            (f"some{row}.{end}", part) for row in range(2) for end, part in (("tif", content), ("cls", b"%d" % row))
        ):
            info = tarfile.TarInfo(name)
            info.size = len(part)
            shard.addfile(info, io.BytesIO(part))
    return "webdataset", folder / "some.tar"


def in_records(folder, content, ending):
    write_records(folder / "some.tfrecord", [example(image=[content], label=[row]) for row in range(2)])
    return "tfrecord", folder / "some.tfrecord"


def in_arrow(folder, content, ending):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    rows = {"image": [{"bytes": content, "path": None}] * 2, "label": [0, 1]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(folder / "some")
    return "huggingface", folder / "some"


SOURCES = [in_folders, in_shard, in_records, in_arrow]


@pytest.mark.parametrize("place", SOURCES)
@pytest.mark.parametrize("kind", KEPT)
def test_values_are_kept(load, tmp_path, kind, place):
    image, ending, expected = KEPT[kind]
    source, path = place(tmp_path, encoded(image, ending), ending)
    x = load(source, path=str(path), split={"test": 0}).splits["train"].columns["x"]
    np.testing.assert_array_equal(x, np.stack([expected] * 2))


@pytest.mark.parametrize("place", SOURCES)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_bytes_can_not_show_is_refused_by_name(load, tmp_path, kind, place):
    image, ending = REFUSED[kind]
    source, path = place(tmp_path, encoded(image, ending), ending)
    with pytest.raises(DatasetError, match="some"):
        load(source, path=str(path), split={"test": 0})


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_the_file_of_a_refused_image_is_named(load, tmp_path, memory):
    in_folders(tmp_path, encoded(Image.fromarray(RAMP), "tiff"), "tiff")
    (tmp_path / "b" / "some.tiff").write_bytes(encoded(*REFUSED["F"]))
    with pytest.raises(DatasetError, match=r"b/some\.tiff"):
        load("images", path=str(tmp_path), split={"test": 0}, memory=memory)


@pytest.mark.parametrize("kind", [kind for kind in KEPT if KEPT[kind][2] is GREY])
def test_grey_is_grey_with_one_channel(kind):
    image, ending, expected = KEPT[kind]
    found = decode(encoded(image, ending), (16, 16), 1, "x")
    np.testing.assert_array_equal(found, expected[:1])


@pytest.mark.parametrize("mode", sorted(Image.MODES))
@pytest.mark.parametrize("channels", [1, 3])
def test_no_mode_of_pillow_escapes(mode, channels):
    image = Image.new(mode, (4, 4))
    if mode in ("I", "F"):
        with pytest.raises(DatasetError):
            pixels(image, (2, 2), channels, "x")
    else:
        assert pixels(image, (2, 2), channels, "x").shape == (channels, 2, 2)


def test_arrays_of_16_bits_keep_their_values(load, tmp_path):
    values = np.stack([WIDE, WIDE[::-1]])
    np.savez(tmp_path / "some.npz", x=values, y=np.arange(2))
    x = load("numpy", path=str(tmp_path / "some.npz"), split={"test": 0}, normalize=False).splits["train"].columns["x"]
    np.testing.assert_array_equal(x, values)
