from __future__ import annotations

import pickle

import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter
from sklearn.datasets import load_digits

from rtrain.datasets.base import EpochPlan
from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError


def write_digits(folder, num_rows=60, first=0, ending="png"):
    """Write digits as (12, 10) images into a folder per class."""
    bunch = load_digits()
    for row in range(first, first + num_rows):
        path = folder / f"digit-{bunch.target[row]}" / f"{row:04}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((bunch.images[row] * 15).astype(np.uint8)).resize((10, 12)).save(path)


def test_a_folder_per_class(load, tmp_path):
    write_digits(tmp_path)
    (tmp_path / "digit-0" / "notes.txt").write_text("not an image")
    dataset = load("images", path=str(tmp_path), channels=1)
    info = dataset.info
    assert info.class_names == tuple(f"digit-{i}" for i in range(10))
    assert info.input_shape == (1, 12, 10)
    assert info.num_rows == {"train": 48, "test": 12}
    assert dataset.splits["train"].columns["x"].dtype == np.uint8
    assert info.dtype == "uint8"
    assert info.memory == "resident"
    assert "fit in" in info.memory_reason


def test_pixels_are_those_of_the_file(load, tmp_path):
    write_digits(tmp_path, 30)
    columns = load("images", path=str(tmp_path), channels=1, split={"test": 0}).splits["train"].columns
    first = sorted((tmp_path / "digit-0").iterdir())[0]
    np.testing.assert_array_equal(columns["x"][0, 0], np.asarray(Image.open(first)))


def test_split_folders_and_image_size(load, tmp_path):
    write_digits(tmp_path / "train", 40, ending="jpg")
    write_digits(tmp_path / "validation", 20, first=100, ending="bmp")
    info = load("images", path=str(tmp_path), image_size=[6, 5]).info
    assert info.num_rows == {"train": 40, "val": 20}
    assert info.input_shape == (3, 6, 5)
    assert len(info.mean) == 3


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("skip_rows", [0, 28])
def test_streamed_steps_are_the_resident_ones(load, tmp_path, world_size, skip_rows):
    write_digits(tmp_path, 150)
    resident, stream = (
        load("images", path=str(tmp_path), memory=memory).splits["train"] for memory in ("resident", "stream")
    )
    for rank in range(world_size):
        one = EpochPlan(rank=rank, world_size=world_size, global_batch_size=7, seed=3, epoch=1, skip_rows=skip_rows)
        for expected, found in zip(resident.batches(one), stream.batches(one), strict=True):
            np.testing.assert_array_equal(expected.x, found.x)
            np.testing.assert_array_equal(expected.y, found.y)
            assert expected.num_global == found.num_global


def test_a_pass_over_streamed_images_may_be_left_early(load, tmp_path):
    write_digits(tmp_path, 60)
    batches = (
        load("images", path=str(tmp_path), memory="stream")
        .splits["train"]
        .batches(EpochPlan(rank=0, world_size=1, global_batch_size=7, seed=3))
    )
    assert len(next(batches).y) == 7
    batches.close()


def test_streamed_statistics_are_those_of_train(load, tmp_path):
    write_digits(tmp_path, 100)
    resident, stream = (load("images", path=str(tmp_path), memory=memory).info for memory in ("resident", "stream"))
    np.testing.assert_allclose(resident.mean, stream.mean)
    np.testing.assert_allclose(resident.std, stream.std)
    assert resident.num_rows == stream.num_rows
    assert stream.memory == "stream"


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("content", [b"no image", b""])
def test_a_corrupt_image_is_named(load, tmp_path, memory, content):
    write_digits(tmp_path)
    (tmp_path / "digit-3" / "broken.png").write_bytes(content)
    with pytest.raises(DatasetError, match=r"broken\.png: can't be read as an image"):
        load("images", path=str(tmp_path), memory=memory, image_size=[4, 4], split={"test": 0})


def test_a_cut_off_image_is_named(load, tmp_path):
    write_digits(tmp_path, ending="jpg")
    file = sorted((tmp_path / "digit-1").iterdir())[0]
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(DatasetError, match=file.name):
        load("images", path=str(tmp_path))


def test_classes_must_agree_between_splits(load, tmp_path):
    write_digits(tmp_path / "train", 40)
    write_digits(tmp_path / "test", 10)
    (tmp_path / "test" / "digit-x").mkdir()
    with pytest.raises(DatasetError, match="split 'test' has a class folder 'digit-x' that train lacks"):
        load("images", path=str(tmp_path))


def test_an_empty_class_folder_is_an_error(load, tmp_path):
    write_digits(tmp_path)
    (tmp_path / "digit-x").mkdir()
    with pytest.raises(DatasetError, match="digit-x: the class folder contains no image"):
        load("images", path=str(tmp_path))


def test_a_folder_without_classes_is_an_error(load, tmp_path):
    with pytest.raises(DatasetError, match="two or more classes; found: none"):
        load("images", path=str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(DatasetError, match="no images for the split 'train'"):
        load("images", path=str(tmp_path))
    with pytest.raises(DatasetError, match="does not exist"):
        load("images", path=str(tmp_path / "no"))


def test_streamed_images_say_that_they_are_bytes(load, tmp_path):
    write_digits(tmp_path)
    dataset = load("images", path=str(tmp_path), channels=1, memory="stream")
    batch = next(dataset.splits["train"].batches(EpochPlan(rank=0, world_size=1, global_batch_size=4, seed=0)))
    assert dataset.info.dtype == batch.x.dtype == "uint8"


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_broken_images_are_skipped_and_counted(load, tmp_path, memory):
    write_digits(tmp_path)
    expected = load("images", path=str(tmp_path), memory=memory, split={"test": 0})
    (tmp_path / "digit-0" / "0000-broken.png").write_bytes(b"no image")
    (tmp_path / "digit-3" / "9999-broken.png").write_bytes(b"")
    dataset = load("images", path=str(tmp_path), memory=memory, on_error="skip", split={"test": 0})
    assert (dataset.info.num_skipped, expected.info.num_skipped) == (2, 0)
    assert dataset.info.num_rows == expected.info.num_rows
    one = EpochPlan(rank=0, world_size=1, global_batch_size=60, seed=0)
    (found,), (wanted,) = (part.splits["train"].batches(one) for part in (dataset, expected))
    np.testing.assert_array_equal(found.x, wanted.x)


def test_a_class_of_broken_images_alone_is_an_error(load, tmp_path):
    write_digits(tmp_path)
    (tmp_path / "digit-x").mkdir()
    (tmp_path / "digit-x" / "broken.png").write_bytes(b"no image")
    with pytest.raises(DatasetError, match="digit-x: the class folder contains no image"):
        load("images", path=str(tmp_path), on_error="skip")


def test_images_to_predict_keep_their_names_and_order(load, tmp_path):
    write_digits(tmp_path / "data")
    dataset = load("images", path=str(tmp_path / "data"), channels=1, split={"test": 0})

    def rows(path, with_labels=True):
        conf = TypeAdapter(confs()["images"]).validate_python({"path": str(path)})
        reader = pickle.loads(pickle.dumps(load_source("images").open_rows(conf, dataset.encoding)))
        return [chunk for piece in reader.pieces for chunk in reader.read(piece, with_labels)]

    (chunk,) = rows(tmp_path / "data")
    np.testing.assert_array_equal(chunk.x, dataset.splits["train"].columns["x"])
    np.testing.assert_array_equal(chunk.y, dataset.splits["train"].columns["y"])
    assert chunk.kept["file"][0] == str(tmp_path / "data" / "digit-0" / "0000.png")
    write_digits(tmp_path / "new", 1)
    (tmp_path / "new" / "digit-0" / "0000.png").rename(tmp_path / "new" / "x.png")
    for path in (tmp_path / "new", tmp_path / "new" / "x.png", tmp_path / "new" / "*.png"):
        (chunk,) = rows(path, with_labels=False)
        assert (chunk.x.shape, chunk.y) == ((1, 1, 12, 10), None)
        with pytest.raises(DatasetError, match=r"x\.png is in no folder of a class(.|\n)*Known classes: digit-0"):
            rows(path)
