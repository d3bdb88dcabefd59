from __future__ import annotations

import pickle

import numpy as np
import pytest
from pydantic import TypeAdapter
from sklearn.datasets import load_digits

from rtrain.datasets.base import EpochPlan
from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)


def write(folder, **arrays):
    folder.mkdir(exist_ok=True)
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)


def test_a_file_with_x_and_y(load, tmp_path):
    np.savez_compressed(tmp_path / "digits.npz", x=X, y=Y)
    dataset = load("numpy", path=str(tmp_path / "digits.npz"), split={"test": 0})
    assert (dataset.info.task, dataset.info.num_classes, dataset.info.input_shape) == ("classification", 10, (64,))
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"], X)
    np.testing.assert_array_equal(dataset.splits["train"].columns["y"], Y)


@pytest.mark.parametrize("pattern", ["{array}_{split}", "{split}_{array}"])
def test_names_tell_the_splits(load, tmp_path, pattern):
    rows = {"train": slice(0, 100), "valid": slice(100, 130), "test": slice(130, 150)}
    arrays = {
        pattern.format(array=array, split=split): values[part]
        for split, part in rows.items()
        for array, values in (("x", X), ("y", Y))
    }
    write(tmp_path / "a", **arrays)
    assert load("numpy", path=str(tmp_path / "a")).info.num_rows == {"train": 100, "val": 30, "test": 20}


@pytest.mark.parametrize("shape", [(-1, 8, 8), (-1, 8, 8, 1), (-1, 1, 8, 8)])
def test_images_get_their_channels_first(load, tmp_path, shape):
    np.savez(tmp_path / "x.npz", images=X.astype(np.uint8).reshape(shape), label=Y)
    info = load("numpy", path={"train": str(tmp_path / "x.npz")}, x="images", y="label").info
    assert (info.input_shape, info.dtype) == ((1, 8, 8), "uint8")


@pytest.mark.parametrize("world_size", [1, 3])
def test_mapped_rows_are_the_resident_ones(load, tmp_path, world_size):
    write(tmp_path / "a", x=X.astype(np.float64), y=np.array([f"digit {y}" for y in Y]))
    resident, stream = (load("numpy", path=str(tmp_path / "a"), memory=memory) for memory in ("resident", "stream"))
    assert stream.info.memory == "stream"
    assert resident.info.class_names == stream.info.class_names == tuple(f"digit {i}" for i in range(10))
    assert resident.info.dtype == stream.info.dtype == "float64"
    np.testing.assert_allclose(resident.info.mean, stream.info.mean)
    np.testing.assert_allclose(resident.info.std, stream.info.std)
    for rank in range(world_size):
        one = EpochPlan(rank=rank, world_size=world_size, global_batch_size=100, seed=3, epoch=1, skip_rows=200)
        split = pickle.loads(pickle.dumps(stream.splits["train"]))
        for expected, found in zip(resident.splits["train"].batches(one), split.batches(one), strict=True):
            np.testing.assert_array_equal(expected.x, found.x)
            np.testing.assert_array_equal(expected.y, found.y)
            assert expected.num_global == found.num_global
        (expected,) = resident.splits["train"].own_rows(rank, world_size)
        (found,) = split.own_rows(rank, world_size)
        np.testing.assert_array_equal(expected["x"], found["x"])
    assert len(pickle.dumps(stream.splits["train"])) < 50_000


def test_a_small_share_of_a_pass_may_have_no_rows(load, tmp_path):
    write(tmp_path / "a", x=X[:10], y=Y[:10])
    split = load("numpy", path=str(tmp_path / "a"), memory="stream", split={"test": 0}).splits["train"]
    (none,) = split.own_rows(0, 20)
    assert (none["x"].shape, none["y"].shape) == ((0, 64), (0,))
    (batch,) = split.batches(EpochPlan(rank=0, world_size=20, global_batch_size=20, seed=0))
    assert batch.x.shape == (0, 64)


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("kind", [">i4", ">f4", ">f8", np.longdouble])
def test_targets_of_any_byte_order_and_width(load, tmp_path, memory, kind):
    write(tmp_path / "a", x=X.astype(">f4"), y=Y.astype(kind))
    found = load("numpy", path=str(tmp_path / "a"), memory=memory, task="classification", split={"test": 0})
    (batch,) = found.splits["train"].batches(
        EpochPlan(rank=0, world_size=1, global_batch_size=len(X), seed=0, shuffle=False)
    )
    np.testing.assert_array_equal(batch.y, Y)
    np.testing.assert_array_equal(batch.x, X)


def test_missing_values_are_known_by_the_number_of_their_feature(load, tmp_path):
    write(tmp_path / "a", x=np.where(np.arange(64) == 5, np.nan, X), y=Y)
    for memory in ("resident", "stream"):
        assert load("numpy", path=str(tmp_path / "a"), memory=memory).info.missing == ("f5",)


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_an_infinite_value_is_named_by_its_row_in_the_file(load, tmp_path, memory):
    x = X.astype(np.float64)
    x[7, 5], x[7, 6], x[9] = np.nan, -np.inf, np.inf
    write(tmp_path / "a", x=x, y=Y)
    with pytest.raises(DatasetError, match=r"a: feature 'f6' is infinite, or too large for float64, in row 8\."):
        load("numpy", path=str(tmp_path / "a"), memory=memory, split={"val": 0, "test": 0})
    write(tmp_path / "b", x_train=X, y_train=Y, x_test=x[:9], y_test=Y[:9])
    if memory == "resident":
        with pytest.raises(DatasetError, match=r"in row 8\.\n.*\n.*without the test split: dataset.split.test=0"):
            load("numpy", path=str(tmp_path / "b"), memory=memory)


@pytest.mark.parametrize("kind", ["int64", "float32"])
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_pixels_that_would_count_otherwise_than_in_training_are_refused(load, open_rows, tmp_path, kind, memory):
    images = {"uint8": X.astype(np.uint8).reshape(-1, 1, 8, 8), kind: X.astype(kind).reshape(-1, 1, 8, 8)}
    for name, x in images.items():
        write(tmp_path / name, x=x, y=Y)
    for learned, new, message in (
        ("uint8", kind, "the inputs are of another type than the train rows, uint8"),
        (kind, "uint8", "the inputs are of uint8, but the train rows are not"),
    ):
        dataset = load("numpy", path=str(tmp_path / learned), memory=memory)
        assert open_rows("numpy", dataset, path=str(tmp_path / learned)).x.dtype == dataset.info.dtype
        with pytest.raises(DatasetError, match=rf"{new}: {message}\.\nSave them as those"):
            open_rows("numpy", dataset, path=str(tmp_path / new))
        paths = {"train": str(tmp_path / learned), "test": str(tmp_path / new)}
        with pytest.raises(DatasetError, match=message):
            load("numpy", path=paths, memory=memory)


def test_mapped_parts_that_do_not_fit_together_are_refused(load, tmp_path):
    for arrays, message in (
        ({"x_test": X[:, :9], "y_test": Y}, "rows are of shape 9, those of .* of 64"),
        ({"x_test": X[:5], "y_test": Y}, "5 rows of inputs, but 1797 of y"),
    ):
        write(tmp_path / "a", x_train=X, y_train=Y, **arrays)
        with pytest.raises(DatasetError, match=message):
            load("numpy", path=str(tmp_path / "a"), memory="stream")


def test_new_rows_need_no_targets(load, tmp_path):
    np.savez(tmp_path / "x.npz", x=X, y=Y)
    dataset = load("numpy", path=str(tmp_path / "x.npz"))
    for arrays in ({"x": X}, {"x": X, "y": Y}):
        np.savez(tmp_path / "new.npz", **arrays)
        conf = TypeAdapter(confs()["numpy"]).validate_python({"path": str(tmp_path / "new.npz")})
        reader = load_source("numpy").open_rows(conf, dataset.encoding)
        (chunk,) = [chunk for piece in reader.pieces for chunk in pickle.loads(pickle.dumps(reader)).read(piece, True)]
        np.testing.assert_array_equal(chunk.x, X)
        assert (chunk.y is None) == ("y" not in arrays)
    np.savez(tmp_path / "new.npz", x=X[:, :9], y=Y)
    with pytest.raises(DatasetError, match="rows are of shape 9, but the training rows were of 64"):
        list(reader.read(reader.pieces[0], with_labels=True))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": X, "y": Y}, "no arrays 'x' and 'y'.*\n.*available: a, y"),
        ({"x": X, "y": Y[:5]}, "1797 rows of inputs, but 5 of y"),
        ({"x": X[:, 0], "y": Y}, "of shape 1797; rows of one or more numbers"),
        ({"x": X.astype(str), "y": Y}, "numbers are needed"),
        ({"x": X, "y": np.stack([Y, Y], 1)}, "targets are of shape 1797 x 2.*\n.*train_loop"),
        ({"x": X, "y": np.stack([X, X], 1)}, "targets are of shape 1797 x 2 x 64.*\n.*datamodule"),
        ({"x": X, "y": np.array([{}] * len(X))}, "Pickled objects are never loaded"),
        ({"x": X[:0], "y": Y[:0]}, "there are no rows"),
        ({"x": X, "y": np.array(3)}, "1797 rows of inputs, but a single number of y"),
        ({"x": X, "y": Y + 1j}, "the targets are of type complex128; a label is"),
    ],
)
def test_mistakes_are_explained(load, tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DatasetError, match=message):
        load("numpy", path=str(tmp_path / "x.npz"))


def test_unreadable_files_are_named(load, tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no zip")
    with pytest.raises(DatasetError, match=r"x\.npz: can't be read"):
        load("numpy", path=str(tmp_path / "x.npz"))
    write(tmp_path / "a", x=X, y=Y)
    with pytest.raises(DatasetError, match="inputs and targets are two files"):
        load("numpy", path=str(tmp_path / "a" / "x.npy"))
    np.savez(tmp_path / "x.npz", x=X, y=Y)
    with pytest.raises(DatasetError, match="can't be mapped"):
        load("numpy", path=str(tmp_path / "x.npz"), memory="stream")
