from __future__ import annotations

import gzip
import io
import pickle
import zlib

import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter
from record_files import example, framed, write_records

from rtrain.datasets.registry import confs, load_source
from rtrain.datasets.tfrecord_format import read_examples
from rtrain.errors import DatasetError

NUMBERS = [example(b=[i / 2, float(i)], a=[i], label=[i % 3]) for i in range(12)]


WRITTEN_BY_TENSORFLOW = bytes.fromhex(
    "34000000000000005e33175c0a320a0d0a0162120812060a040000003f0a140a0161120f1a0d0a0b01feffffffffffffffff"
    "010a0b0a016312060a040a027879ac3f8064"
)
"""By tf.io.TFRecordWriter of TensorFlow 2.21: a is int64 [1, -2], b is float [0.5], c is bytes [b"xy"]."""


def test_a_file_that_tensorflow_wrote(tmp_path):
    (tmp_path / "x.tfrecord").write_bytes(WRITTEN_BY_TENSORFLOW)
    assert list(read_examples(tmp_path / "x.tfrecord")) == [{"a": [1, -2], "b": [0.5], "c": [b"xy"]}]


@pytest.mark.parametrize("name", ["x.tfrecord", "x.tfrecord.gz"])
def test_numbers_of_several_features(load, tmp_path, name):
    dataset = load("tfrecord", path=write_records(tmp_path / name, NUMBERS), split={"test": 0})
    assert (dataset.info.feature_names, dataset.info.num_classes) == (("a", "b_0", "b_1"), 3)
    columns = dataset.splits["train"].columns
    np.testing.assert_array_equal(columns["x"], [[i, i / 2, i] for i in range(12)])
    np.testing.assert_array_equal(columns["y"], np.arange(12) % 3)


def test_shards_named_after_splits_and_a_shape(load, tmp_path):
    for name, rows in (
        ("train-00000-of-00002", slice(4)),
        ("train-00001-of-00002", slice(4, 8)),
        ("test-0", slice(8, 12)),
    ):
        write_records(tmp_path / f"{name}.tfrecord", NUMBERS[rows])
    info = load("tfrecord", path=str(tmp_path), features=["b"], shape=[1, 2, 1]).info
    assert (info.num_rows, info.input_shape) == ({"train": 8, "test": 4}, (1, 2, 1))


def png(value):
    stream = io.BytesIO()
    Image.new("L", (4, 3), value).save(stream, "png")
    return stream.getvalue()


def test_encoded_images_and_labels_of_text(load, tmp_path):
    records = [example(image=[png(i * 20)], kind=[b"ab"[i % 2 : i % 2 + 1]], id=[i]) for i in range(6)]
    keys = {
        "path": write_records(tmp_path / "x.tfrecord", records),
        "features": ["image"],
        "label": "kind",
        "channels": 1,
    }
    dataset = load("tfrecord", **keys, split={"test": 0})
    assert (dataset.info.input_shape, dataset.info.class_names) == ((1, 3, 4), ("a", "b"))
    np.testing.assert_array_equal(dataset.splits["train"].columns["x"][:, 0, 0, 0], np.arange(6) * 20)
    conf = TypeAdapter(confs()["tfrecord"]).validate_python(keys)
    reader = load_source("tfrecord").open_rows(conf, dataset.encoding)
    (chunk,) = [chunk for piece in reader.pieces for chunk in pickle.loads(pickle.dumps(reader)).read(piece, True)]
    np.testing.assert_array_equal(chunk.x, dataset.splits["train"].columns["x"])
    np.testing.assert_array_equal(chunk.y, dataset.splits["train"].columns["y"])
    assert chunk.kept == {"id": list(range(6))}


def test_new_records_need_no_label(load, tmp_path):
    dataset = load("tfrecord", path=write_records(tmp_path / "x.tfrecord", NUMBERS))
    keys = {"path": write_records(tmp_path / "new.tfrecord", [example(b=[1.0, 2.0], a=[3])])}
    reader = load_source("tfrecord").open_rows(TypeAdapter(confs()["tfrecord"]).validate_python(keys), dataset.encoding)
    (chunk,) = reader.read(reader.pieces[0], with_labels=True)
    assert (chunk.x.tolist(), chunk.y) == ([[3, 1, 2]], None)


def test_new_records_have_the_shape_of_training_without_the_keys(load, open_rows, tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(image=[png(row * 20)], label=[row % 2]) for row in range(6)])
    numbers = write_records(tmp_path / "numbers.tfrecord", NUMBERS)
    for keys in ({"path": path, "channels": 1}, {"path": path}, {"path": numbers, "shape": [1, 3]}, {"path": numbers}):
        dataset = load("tfrecord", **keys, split={"test": 0})
        found = open_rows("tfrecord", dataset, path=keys["path"])
        np.testing.assert_array_equal(found.x, dataset.splits["train"].columns["x"])


def test_new_records_have_the_type_of_training(load, open_rows, tmp_path):
    dataset = load("tfrecord", path=write_records(tmp_path / "x.tfrecord", NUMBERS))
    path = write_records(tmp_path / "new.tfrecord", [example(b=[1.0, 2.0], a=[2**24 + 1])])
    assert open_rows("tfrecord", dataset, path=path).x.dtype == dataset.info.dtype


@pytest.mark.parametrize(
    ("records", "keys", "message"),
    [
        ([], {}, "there are no records"),
        ([*NUMBERS, b"\xff\xff"], {}, "record 13 is not a tf.train.Example"),
        (NUMBERS, {"label": "y"}, r"'y', which the first record lacks.\navailable: a, b, label"),
        ([*NUMBERS, example(a=[1], b=[1.0], label=[0])], {}, "record 13 has 1 values of 'b', but the first one has 2"),
        ([*NUMBERS, example(a=[1], b=[1.0, 2.0])], {}, "record 13 has 0 values of 'label'"),
        (NUMBERS, {"shape": [2, 2]}, "2 x 2 does not match the 3 numbers"),
        ([example(a=[b"x"], b=[1], label=[1])], {}, "'a' contains bytes"),
        ([example(a=[b"x"], label=[1])], {}, "can't be read as an image"),
    ],
)
def test_mistakes_are_explained(load, tmp_path, records, keys, message):
    with pytest.raises(DatasetError, match=message):
        load("tfrecord", path=write_records(tmp_path / "x.tfrecord", records), **keys)


def test_damage_is_found_and_the_record_named(load, tmp_path):
    file = tmp_path / "x.tfrecord"
    whole = b"".join(framed(record) for record in NUMBERS)
    start = len(b"".join(framed(record) for record in NUMBERS[:4]))
    for place, message in (
        (start + 20, "checksum of the data of record 5 is wrong"),
        (start + 1, "checksum of the length of record"),
    ):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DatasetError, match=message):
            load("tfrecord", path=str(file))
    for size in (len(whole) - 1, start + 5):
        file.write_bytes(whole[:size])
        with pytest.raises(DatasetError, match="is cut off"):
            load("tfrecord", path=str(file))


def test_a_file_that_tensorflow_packed_has_no_other_name(load, tmp_path):
    """``TFRecordWriter(path, options="GZIP")``."""
    path = write_records(tmp_path / "x.tfrecord", NUMBERS)
    plain = load("tfrecord", path=path).splits["train"].columns["x"]
    (tmp_path / "x.tfrecord").write_bytes(gzip.compress((tmp_path / "x.tfrecord").read_bytes()))
    np.testing.assert_array_equal(load("tfrecord", path=path).splits["train"].columns["x"], plain)


@pytest.mark.parametrize("level", range(10))
def test_what_zlib_packed_is_not_called_damaged(load, tmp_path, level):
    path = write_records(tmp_path / "x.tfrecord", NUMBERS)
    (tmp_path / "x.tfrecord").write_bytes(zlib.compress((tmp_path / "x.tfrecord").read_bytes(), level))
    with pytest.raises(DatasetError, match="compressed with zlib"):
        load("tfrecord", path=path)


@pytest.mark.parametrize("length", [0x088B1F, 0x9C78, 0x0178])
def test_a_length_that_looks_like_the_head_of_a_packed_file(tmp_path, length):
    rest = length - len(example(a=[b"x" * (length - 40)]))
    record = example(a=[b"x" * (length - 40 + rest)])
    assert len(record) == length
    write_records(tmp_path / "x.tfrecord", [record, record])
    assert [len(one["a"][0]) for one in read_examples(tmp_path / "x.tfrecord")] == [length - 40 + rest] * 2
