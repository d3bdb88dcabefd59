from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from rtrain.errors import DatasetError


def idx(values):
    return struct.pack(f">I{values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.tobytes()


def write(folder, name, content, zipped):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (f"{name}.gz" if zipped else name)
    file.write_bytes(gzip.compress(content) if zipped else content)
    return file


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return {
        prefix: rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        for prefix, count in (("train", 200), ("t10k", 50))
    }


def write_all(folder, images, zipped=True):
    for prefix, values in images.items():
        write(folder, f"{prefix}-images-idx3-ubyte", idx(values), zipped)
        write(folder, f"{prefix}-labels-idx1-ubyte", idx((np.arange(len(values)) % 10).astype(np.uint8)), zipped)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("below", ["", "MNIST/raw"])
def test_idx_files_are_read(load, tmp_path, images, zipped, below):
    write_all(tmp_path / below, images, zipped)
    dataset = load("mnist", path=str(tmp_path))
    assert dataset.info.num_rows == {"train": 200, "test": 50}
    assert dataset.info.input_shape == (1, 28, 28)
    assert dataset.info.dtype == "uint8"
    np.testing.assert_array_equal(dataset.splits["test"].columns["x"][:, 0], images["t10k"])
    assert dataset.splits["train"].columns["y"].dtype == np.int64
    assert dataset.info.mean[0] == pytest.approx((images["train"] / 255).mean())


def test_val_is_a_stratified_share_of_train(load, tmp_path, images):
    write_all(tmp_path, images)
    dataset = load("mnist", path=str(tmp_path), split={"val": 0.1})
    assert dataset.info.num_rows == {"train": 180, "val": 20, "test": 50}
    assert np.bincount(dataset.splits["val"].columns["y"]).tolist() == [2] * 10


def test_limit_holds_for_each_file(load, tmp_path, images):
    write_all(tmp_path, images)
    assert load("mnist", path=str(tmp_path), limit=40).info.num_rows == {"train": 40, "test": 40}


@pytest.mark.parametrize(
    ("break_file", "message"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "broken gzip file"),
        (lambda file: file.write_bytes(b"not gzip"), "broken gzip file"),
        (lambda file: file.write_bytes(gzip.compress(b"<html>no such file</html>")), "magic number 0x3c68746d"),
        (
            lambda file: file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[:-100])),
            "its header says 200 x 28",
        ),
        (lambda file: file.write_bytes(gzip.compress(b"")), "not an IDX file"),
        (lambda file: file.unlink(), "train-images-idx3-ubyte"),
    ],
)
def test_a_broken_file_is_named(load, tmp_path, images, break_file, message):
    write_all(tmp_path, images)
    break_file(tmp_path / "train-images-idx3-ubyte.gz")
    with pytest.raises(DatasetError, match=message):
        load("mnist", path=str(tmp_path))


def test_counts_must_agree(load, tmp_path, images):
    write_all(tmp_path, images)
    write(tmp_path, "t10k-labels-idx1-ubyte", idx(np.zeros(49, np.uint8)), True)
    with pytest.raises(DatasetError, match="50 images but 49 labels"):
        load("mnist", path=str(tmp_path))
