"""Images of Hugging Face data sets are the same in memory and on disk, and where they are read to predict."""

import io
import pickle
import shutil

import numpy as np
import pytest
from PIL import Image
from rows_on_disk import check_same_rows

from rtrain.datasets.base import EpochPlan
from rtrain.errors import DatasetError

datasets = pytest.importorskip("datasets")
COUNT = 50
SIZES = [(9, 7), (12, 16), (7, 7)]
MODES = ("RGB", "L", "RGBA", "P", "1", "I;16", "CMYK")
TURNED = 6
"""An orientation of EXIF: the camera was held on its side."""


def encoded(row):
    """Return the bytes of an image, each of another size and mode than the one before."""
    draw, mode, (height, width) = np.random.default_rng(row), MODES[row % len(MODES)], SIZES[row % len(SIZES)]
    values = draw.integers(0, 256, (height, width, 3), np.uint8)
    image = Image.fromarray(values[..., 0].astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(values)
    image = image if mode == "I;16" else image.convert(mode)
    exif, file = Image.Exif(), io.BytesIO()
    if row % 5 == 0:
        exif[0x0112] = TURNED
    image.save(file, "TIFF" if mode == "CMYK" else "PNG", exif=exif)
    return file.getvalue()


def save(folder, parts=None, kind=None, count=COUNT):
    """Write a data set, in more than one file, and return its folder."""
    names = datasets.ClassLabel(names=["ant", "zebra", "cow"])
    rows = [{"bytes": encoded(row), "path": None} for row in range(count)]
    whole = datasets.Dataset.from_dict(
        {"image": rows, "label": [row % 3 for row in range(count)], "amount": [row / 4 for row in range(count)]},
        features=datasets.Features(image=kind or datasets.Image(), label=names, amount=datasets.Value("float64")),
    )
    made = datasets.DatasetDict({name: whole.select(rows) for name, rows in parts.items()}) if parts else whole
    several = dict.fromkeys(parts, 3) if parts else 3
    made.save_to_disk(str(folder), num_shards=several)
    return str(folder)


@pytest.mark.parametrize(
    "parts", [None, {"train": range(30), "validation": range(30, 50)}, {"train": range(49, -1, -1)}], ids=str
)
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"channels": 1, "image_size": [5, 6]},
        {"image_size": [8, 4], "normalize": False},
        {"label": "amount", "normalize": {"mean": [0.5] * 3, "std": [0.2] * 3}},
        {"split": {"test": 0.3}, "seed": 3, "sample": 0.7},
        {"limit": 17},
    ],
    ids=str,
)
def test_images_on_disk_are_the_rows_that_images_in_memory_are(load, tmp_path, keys, parts):
    path = save(tmp_path / "x", parts)
    held, mapped = (load("huggingface", path=path, memory=memory, **keys) for memory in ("resident", "stream"))
    assert held.info.dtype == "uint8"
    check_same_rows(held, mapped)


@pytest.mark.parametrize("size", [None, [6, 6], "original"], ids=str)
@pytest.mark.parametrize("mode", [None, "L"])
def test_rows_are_the_images_that_the_data_set_shows(load, tmp_path, size, mode):
    path = save(tmp_path / "x", kind=datasets.Image(mode=mode))
    split = load("huggingface", path=path, memory="stream", image_size=size, split={"test": 0}).splits["train"]
    shown = [row["image"] for row in datasets.load_from_disk(path)]
    found = [row for part in split.own_rows(0, 1) for row in part["x"]]
    for row, image in zip(found, shown, strict=True):
        if image.mode == "I;16":
            continue  # scaled to bytes, where Pillow's conversion cuts them off
        want = image.convert("RGB")
        if size != "original":
            want = want.resize(size or shown[0].size, Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(row, np.asarray(want).transpose(2, 0, 1))


def test_images_keep_their_sizes(load, tmp_path):
    path = save(tmp_path / "x")
    dataset = load("huggingface", path=path, image_size="original")
    info = dataset.info
    assert (info.memory, info.original_sizes, info.dtype, info.input_shape[0]) == ("stream", True, "uint8", 3)
    assert dataset.encoding["image_size"] == "original"
    plan = EpochPlan(rank=0, world_size=1, global_batch_size=11, seed=0)
    rows = [row for batch in dataset.splits["train"].batches(plan) for row in batch.x]
    assert len({row.shape for row in rows}) > 3, "with those that were turned"
    assert len(rows) == dataset.info.num_rows["train"]
    with pytest.raises(ValueError, match="resident does not work with image_size: original"):
        load("huggingface", path=path, image_size="original", memory="resident")


def test_large_images_are_streamed_by_themselves(load, tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.datasets.memory.free_bytes", lambda: 20_000)
    assert load("huggingface", path=save(tmp_path / "x")).info.memory == "stream"


@pytest.mark.parametrize("size", [None, "original"])
def test_new_images_are_read_a_few_at_a_time(load, open_rows, tmp_path, size):
    path = save(tmp_path / "x", count=150)
    dataset = load("huggingface", path=path, image_size=size, split={"test": 0}, memory="stream")
    found = open_rows("huggingface", dataset, with_labels=True, path=path, image_size=size)
    (want,) = dataset.splits["train"].own_rows(0, 1)
    for row, other in zip(found.x, want["x"], strict=True):
        np.testing.assert_array_equal(row, other)
    np.testing.assert_array_equal(found.y, want["y"])


@pytest.mark.parametrize("kind", ["image", "text", "words"])
def test_all_other_columns_of_new_rows_are_kept(load, open_rows, tmp_path, kind):
    names = datasets.ClassLabel(names=["ant", "zebra"])
    count = 150
    columns = {"id": [f"row {row}" for row in range(count)], "label": [row % 2 for row in range(count)]}
    columns |= {"image": [Image.new("L", (4, 4), row) for row in range(count)], "text": ["a b"] * count}
    columns |= {"words": [["a", "b"]] * count, "tags": [[0, 1]] * count}
    kinds = {"label": names, "tags": datasets.Sequence(names)}
    whole = datasets.Dataset.from_dict(columns)
    for name, kind_of in kinds.items():
        whole = whole.cast_column(name, kind_of)
    whole.save_to_disk(str(tmp_path / "x"))
    keys = {"path": str(tmp_path / "x"), "input": kind, "label": "tags" if kind == "words" else "label"}
    trained = load("huggingface", **keys, split={"test": 0})
    for with_labels in (False, True):
        found = open_rows("huggingface", trained, with_labels=with_labels, **keys).kept
        assert [str(one) for one in found["id"]] == columns["id"]
        want = [["ant", "zebra"][one] for one in columns["label"]]
        labels = found[keys["label"]]
        if kind == "words":
            assert [list(row) for row in labels] == [["ant", "zebra"]] * count
        else:
            assert [str(one) for one in labels] == want
    only = whole.select_columns(["image", "text", "words"][: 1 + (kind != "image") * 2])
    only.save_to_disk(str(tmp_path / "only"))
    rows = open_rows("huggingface", trained, **{**keys, "path": str(tmp_path / "only")})
    assert (len(rows.x), keys["label"] in rows.kept) == (count, False)


def test_a_new_label_of_no_class_is_named_by_its_row(load, open_rows, tmp_path):
    dataset = load("huggingface", path=save(tmp_path / "x"), split={"test": 0})
    rows = [{"bytes": encoded(0), "path": None}] * 100
    other = datasets.Dataset.from_dict({"image": rows, "label": ["ant"] * 90 + ["dog"] * 10})
    other.cast_column("image", datasets.Image()).save_to_disk(str(tmp_path / "y"))
    with pytest.raises(DatasetError, match="row 91 has the label label='dog'"):
        open_rows("huggingface", dataset, with_labels=True, path=str(tmp_path / "y"))


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_images_that_the_data_set_leaves_encoded_are_decoded(load, tmp_path, memory):
    keys = {"memory": memory, "split": {"test": 0}}
    found = [
        load("huggingface", path=save(tmp_path / f"{decode}", kind=datasets.Image(decode=decode)), **keys)
        for decode in (True, False)
    ]
    (one,), (other,) = (list(dataset.splits["train"].own_rows(0, 1)) for dataset in found)
    np.testing.assert_array_equal(one["x"], other["x"])


def test_a_data_set_without_rows_says_so(load, open_rows, tmp_path):
    trained = load("huggingface", path=save(tmp_path / "x"))
    for name, parts in (("one", None), ("parts", {"train": range(0)})):
        path = save(tmp_path / name, parts, count=0)
        with pytest.raises(DatasetError, match="no rows"):
            load("huggingface", path=path)
    with pytest.raises(DatasetError, match="no rows"):
        open_rows("huggingface", trained, path=path)


def test_keys_of_tables_are_refused_for_new_images_too(load, open_rows, tmp_path):
    path = save(tmp_path / "x")
    trained = load("huggingface", path=path)
    with pytest.raises(DatasetError, match=r"dataset\.ids requires columns of a table, but images have none"):
        open_rows("huggingface", trained, path=path, ids=["amount"])


def test_workers_get_no_images(load, tmp_path):
    dataset = load("huggingface", path=save(tmp_path / "x", count=300), memory="stream")
    assert len(pickle.dumps(dataset)) < 15_000


def test_a_machine_without_the_files_says_what_it_needs(load, tmp_path):
    path = save(tmp_path / "x")
    split = load("huggingface", path=path, memory="stream", split={"test": 0}).splits["train"]
    there = pickle.loads(pickle.dumps(split))
    shutil.rmtree(path)
    with pytest.raises(DatasetError, match=r"\.arrow can't be mapped.*\nEach machine needs the file"):
        next(there.own_rows(0, 1))


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "has no image"),
        ({"bytes": b"no image", "path": None}, "no known kind of image"),
        ("cut", "can't be read"),
    ],
    ids=str,
)
def test_a_bad_image_is_named_by_its_row(load, tmp_path, value, message, memory):
    value = {"bytes": encoded(1)[:100], "path": None} if value == "cut" else value
    rows = [value if row == 6 else {"bytes": encoded(row), "path": None} for row in range(8)]
    made = datasets.Dataset.from_dict({"image": rows, "label": [0, 1] * 4})
    made.cast_column("image", datasets.Image()).save_to_disk(str(tmp_path / "x"))
    keys = {"path": str(tmp_path / "x"), "memory": memory, "normalize": False, "split": {"test": 0}}
    with pytest.raises(DatasetError, match=rf"x: row 7 of 'image'.*{message}"):
        list(load("huggingface", **keys).splits["train"].own_rows(0, 1))


@pytest.mark.parametrize("kind", ["image", "text"])
def test_rows_in_another_order_than_their_files_have_to_be_in_memory(load, tmp_path, monkeypatch, kind):
    columns = {"image": [Image.new("RGB", (4, 4), (row, 0, 0)) for row in range(9)]}
    columns |= {"text": [f"text {row}" for row in range(9)], "label": [0, 1, 2] * 3}
    datasets.Dataset.from_dict(columns).save_to_disk(str(tmp_path / "x"))
    order = [8, 7, 6, 5, 4, 3, 2, 1, 0]
    mixed = datasets.load_from_disk(str(tmp_path / "x")).select(order, indices_cache_file_name=str(tmp_path / "order"))
    monkeypatch.setattr(datasets, "load_from_disk", lambda folder: mixed)
    keys = {"path": str(tmp_path / "x"), "input": kind, "split": {"test": 0}}
    found = load("huggingface", **keys).splits["train"].columns["x"]
    if kind == "text":
        assert found.tolist() == [f"text {row}" for row in order]
    else:
        assert found[:, 0, 0, 0].tolist() == order
    with pytest.raises(DatasetError, match=r"memory=stream: the rows of .* are not those of its files in their order"):
        load("huggingface", **keys, memory="stream")
