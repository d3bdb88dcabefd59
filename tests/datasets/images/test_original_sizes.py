"""Images that keep their own sizes: the pixels of their files, in whatever order."""

import numpy as np
import pytest
from image_files import write_images

from rtrain.datasets.base import EpochPlan
from rtrain.datasets.images import decoded


def test_rows_are_the_pixels_of_the_files(load, tmp_path):
    pixels = write_images(tmp_path)
    split = load("images", path=str(tmp_path), image_size="original", split={"test": 0}).splits["train"]
    batches = split.batches(EpochPlan(rank=0, world_size=1, global_batch_size=7, seed=0, shuffle=False))
    found = [row for batch in batches for row in batch.x]
    assert len(found) == len(pixels)
    for row, file in zip(found, sorted(pixels), strict=True):
        np.testing.assert_array_equal(row, pixels[file])


def test_the_description_says_what_rows_are(load, tmp_path):
    write_images(tmp_path)
    dataset = load("images", path=str(tmp_path), image_size="original")
    info = dataset.info
    assert info.original_sizes
    assert (info.memory, info.dtype, info.input_shape[0]) == ("stream", "uint8", 3)
    assert dataset.encoding["image_size"] == "original"


def test_statistics_are_those_of_all_pixels(load, tmp_path):
    pixels = write_images(tmp_path)
    info = load("images", path=str(tmp_path), image_size="original", split={"test": 0}).info
    flat = np.concatenate([one.reshape(3, -1) for one in pixels.values()], axis=1) / 255
    np.testing.assert_allclose(info.mean, flat.mean(1), rtol=1e-6)
    np.testing.assert_allclose(info.std, flat.std(1), rtol=1e-6)


def test_large_images_wait_for_the_trainer_in_bounded_memory(load, tmp_path, monkeypatch):
    write_images(tmp_path)
    split = load("images", path=str(tmp_path), image_size="original", split={"test": 0}).splits["train"]
    read = []
    image = type(split.reader).image
    monkeypatch.setattr(type(split.reader), "image", lambda self, file: (read.append(file), image(self, file))[1])
    monkeypatch.setattr(decoded, "AHEAD_BYTES", 5 * split.row_bytes)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    steps = split.steps(EpochPlan(rank=0, world_size=1, global_batch_size=40, seed=0))
    _, images, _ = next(steps)
    next(images)
    steps.close()
    assert 1 <= len(read) <= 7


def test_memory_can_not_hold_them(load, tmp_path):
    with pytest.raises(ValueError, match="resident does not work with image_size: original"):
        load("images", path=str(tmp_path), image_size="original", memory="resident")


@pytest.mark.parametrize("size", ["own", [8], 8, [8, 0], [8, True], {"height": 8}])
def test_other_sizes_are_refused(load, tmp_path, size):
    with pytest.raises(ValueError, match=r"must be \[height, width\] or original"):
        load("images", path=str(tmp_path), image_size=size)
