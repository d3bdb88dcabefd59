from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from pydantic import TypeAdapter
from record_files import DIGITS, images, npy, png, write_shard

from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError


@pytest.mark.parametrize("name", ["x.tar", "x.tgz"])
def test_images_with_classes(load, tmp_path, name):
    dataset = load("webdataset", path=write_shard(tmp_path / name, images(range(40))), channels=1, split={"test": 0})
    assert (dataset.info.input_shape, dataset.info.dtype, dataset.info.num_classes) == ((1, 8, 8), "uint8", 10)
    columns = dataset.splits["train"].columns
    np.testing.assert_array_equal(columns["x"][:, 0], (DIGITS.images[:40] * 15).astype(np.uint8))
    np.testing.assert_array_equal(columns["y"], DIGITS.target[:40])


def test_shards_named_after_splits(load, tmp_path):
    for name, rows in (("train-000", range(20)), ("train-001", range(20, 40)), ("val-000", range(40, 50))):
        write_shard(tmp_path / f"{name}.tar", images(rows))
    assert load("webdataset", path=str(tmp_path)).info.num_rows == {"train": 40, "val": 10}


def test_arrays_with_labels_in_json(load, tmp_path):
    members = []
    for row in range(20):
        members.append((f"{row}.npy", npy(DIGITS.data[row])))
        members.append((f"{row}.json", json.dumps({"digit": f"no {DIGITS.target[row]}", "weight": row / 2}).encode()))
    path = write_shard(tmp_path / "x.tar", members)
    dataset = load("webdataset", path=path, label="json.digit", split={"test": 0})
    assert dataset.info.class_names == tuple(f"no {i}" for i in range(10))
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"], DIGITS.data[:20])
    assert load("webdataset", path=path, label="json.weight").info.task == "regression"


def test_rows_to_predict_keep_their_names(load, tmp_path):
    dataset = load("webdataset", path=write_shard(tmp_path / "x.tar", images(range(40))), channels=1)
    for members in (images(range(5)), [one for one in images(range(5)) if one[0].endswith("png")]):
        keys = {"path": write_shard(tmp_path / "new.tar", members), "channels": 1}
        conf = TypeAdapter(confs()["webdataset"]).validate_python(keys)
        reader = pickle.loads(pickle.dumps(load_source("webdataset").open_rows(conf, dataset.encoding)))
        (chunk,) = [chunk for piece in reader.pieces for chunk in reader.read(piece, with_labels=True)]
        np.testing.assert_array_equal(chunk.x[:, 0], (DIGITS.images[:5] * 15).astype(np.uint8))
        assert chunk.kept == {"key": [f"data/{row:03}" for row in range(5)]}
    assert chunk.y is None


def test_images_to_predict_have_the_channels_of_training_without_the_key(load, open_rows, tmp_path):
    path = write_shard(tmp_path / "x.tar", images(range(40)))
    for channels in (1, 3):
        dataset = load("webdataset", path=path, channels=channels, split={"test": 0})
        found = open_rows("webdataset", dataset, path=path)
        np.testing.assert_array_equal(found.x, dataset.splits["train"].columns["x"])


def rows_of(arrays):
    named = [(f"{row:03}", one) for row, one in enumerate(arrays)]
    members = [((f"{name}.npy", npy(one)), (f"{name}.cls", b"%d" % (one.sum() % 2))) for name, one in named]
    return [member for row in members for member in row]


@pytest.mark.parametrize(
    "arrays",
    [DIGITS.data.astype(np.uint8), DIGITS.data.astype(np.int64), DIGITS.images.astype(np.uint8), DIGITS.data > 7],
)
def test_arrays_to_predict_are_prepared_as_in_training(load, open_rows, tmp_path, arrays):
    path = write_shard(tmp_path / "x.tar", rows_of(arrays[:300]))
    dataset = load("webdataset", path=path, split={"test": 0})
    found = open_rows("webdataset", dataset, True, path=path)
    train = dataset.splits["train"].columns
    assert found.x.dtype == train["x"].dtype
    np.testing.assert_array_equal(found.x, train["x"])
    np.testing.assert_array_equal(found.y, train["y"])
    assert found.kept == {"key": [f"{row:03}" for row in range(300)]}


def test_a_row_to_predict_of_another_shape_is_named(load, open_rows, tmp_path):
    dataset = load("webdataset", path=write_shard(tmp_path / "x.tar", rows_of(DIGITS.data[:20])))
    for arrays, message in (
        ([*DIGITS.data[:257], np.ones(3), np.ones(3)], r"row 258 is of shape \[3\], but row 257 is of \[64\]"),
        (DIGITS.images[:2], "rows are of shape 8 x 8, but the training rows were of 64"),
    ):
        path = write_shard(tmp_path / "new.tar", rows_of(arrays))
        with pytest.raises(DatasetError, match=message):
            open_rows("webdataset", dataset, path=path)


@pytest.mark.parametrize(
    ("members", "keys", "message"),
    [
        ([], {}, "the shard is empty"),
        ([("a.txt", b"x"), ("a.cls", b"1")], {}, "first row, 'a', has no image or npy; it has: cls, txt"),
        (
            [(f"a.{n:03}.png", b"") for n in range(900)],
            {},
            r"'a', .* 000.png, .* and 890 more\.\n.*first dot",
        ),
        ([("a.png", png(0))], {}, r"row 'a' has no \.cls.\nIt has: png"),
        ([("a.png", b"no image"), ("a.cls", b"1")], {}, r"row 'a': can't be read as an image"),
        ([("a.png", png(0)), ("a.json", b"{}")], {"label": "json.y"}, "has no key 'y'"),
        ([("a.png", png(0)), ("a.json", b"{")], {"label": "json.y"}, r"\.json can't be read"),
        (
            [("a.npy", npy(np.zeros(3))), ("a.cls", b"1"), ("b.npy", npy(np.zeros(2))), ("b.cls", b"0")],
            {},
            r"row 2 is of shape \[2\], but the first one is of \[3\]",
        ),
    ],
)
def test_mistakes_are_explained(load, tmp_path, members, keys, message):
    with pytest.raises(DatasetError, match=message):
        load("webdataset", path=write_shard(tmp_path / "x.tar", members), **keys)


def test_a_broken_shard_is_named(load, tmp_path):
    file = tmp_path / "x.tar"
    write_shard(file, images(range(40)))
    file.write_bytes(file.read_bytes()[:20_000])
    with pytest.raises(DatasetError, match=r"x\.tar: can't be read as a tar file"):
        load("webdataset", path=str(file))
    file.write_bytes(b"no tar")
    with pytest.raises(DatasetError, match=r"x\.tar: can't be read as a tar file"):
        load("webdataset", path=str(file))


@pytest.mark.parametrize(
    ("texts", "task", "first"),
    [
        (["0.5", "1.5", "-2.25"], "regression", 0.5),
        (["1e-05", "2.5E+3", "-.5", "7."], "regression", 1e-05),
        (["1", "2.5"], "regression", 1.0),
        (["12e4", "00a1", "9f"], "classification", 1),
        (["1.2.3", "1.2.4"], "classification", 0),
        (["3", "4"], "classification", 0),
    ],
    ids=str,
)
def test_a_label_is_a_number_where_its_text_is_one(load, tmp_path, texts, task, first):
    rows = [(f"{row:02d}", texts[row % len(texts)]) for row in range(30)]
    members = [one for row, text in rows for one in ((f"{row}.npy", npy(np.ones(3))), (f"{row}.cls", text.encode()))]
    dataset = load("webdataset", path=write_shard(tmp_path / "x.tar", members), split={"test": 0})
    assert dataset.info.task == task
    assert dataset.splits["train"].columns["y"][0] == pytest.approx(first)


@pytest.mark.parametrize("order", [("cls", "png"), ("png", "cls")])
def test_members_that_are_sorted_by_their_endings_are_explained(load, tmp_path, order):
    members = sorted(images(range(20)), key=lambda one: order.index(one[0].rpartition(".")[2]))
    with pytest.raises(DatasetError, match=r"row,? '\S+',? has no") as caught:
        load("webdataset", path=write_shard(tmp_path / "x.tar", members))
    assert "tar --sort=name" in caught.value.hint


@pytest.mark.parametrize("start", [2**53, 2**62, 2**63, 2**64 - 4, 2**70])
def test_classes_that_are_large_numbers_keep_all_digits(load, tmp_path, start):
    names = [start + row % 3 for row in range(30)]
    rows = [((f"{row:02d}.npy", npy(np.ones(3))), (f"{row:02d}.cls", b"%d" % name)) for row, name in enumerate(names)]
    path = write_shard(tmp_path / "x.tar", [one for row in rows for one in row])
    if start > 2**64:
        with pytest.raises(DatasetError, match=r"x\.tar"):
            load("webdataset", path=path)
        return
    info = load("webdataset", path=path, split={"test": 0}).info
    assert info.class_names == tuple(str(start + one) for one in range(3))
