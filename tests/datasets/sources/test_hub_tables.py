"""Tables of Hugging Face data sets have the same rows in memory and on disk."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from rtrain.datasets.base import EpochPlan, concatenated
from rtrain.errors import DatasetError

datasets = pytest.importorskip("datasets")
COUNT = 300
NAMES = ["ant", "zebra", "cow"]


def columns(count=COUNT, seed=0):
    """Return columns of each type that a table may have."""
    draw, number = np.random.default_rng(seed), np.arange(count)
    return {
        "a": draw.normal(size=count),
        "whole": number * 3,
        "small": draw.integers(-9, 9, count).astype(np.int8),
        "flag": number % 2 == 0,
        "color": np.where(number % 3, "red", "blue"),
        "holes": [None if one % 11 == 5 else one / 4 for one in range(count)],
        "marked": np.where(number % 13, number, -999),
        "weight": number % 5 + 1.0,
        "amount": draw.normal(size=count) + number,
        "label": number % 3,
    }


def part(names=NAMES, **more):
    """Return a split; its classes are called ``names``."""
    return datasets.Dataset.from_dict(columns(**more)).cast_column("label", datasets.ClassLabel(names=names))


def save(folder, num_shards=3, **parts):
    """Write splits, or rows without any, in some files each."""
    if not parts:
        part().save_to_disk(str(folder), num_shards=num_shards)
    else:
        datasets.DatasetDict(parts).save_to_disk(str(folder), num_shards=dict.fromkeys(parts, num_shards))
    return str(folder)


@pytest.fixture
def small_batches(monkeypatch):
    """Cut what is written into record batches of some rows, and what is read into pieces of some of those."""
    monkeypatch.setattr(datasets.config, "DEFAULT_MAX_BATCH_SIZE", 7)
    monkeypatch.setattr("rtrain.datasets.tables.formats.arrow.PIECE_ROWS", 20)


def rows_of(dataset, name):
    return concatenated(list(dataset.splits[name].own_rows(0, 1)))


KEYS = [
    {"on_missing": "keep"},
    {"on_missing": "mean", "normalize": False},
    {"features": ["a", "small", "flag"]},
    {"drop": ["holes", "color"], "dtype": "float64", "normalize": False},
    {"features": ["a", "whole", "color"], "dtypes": {"whole": "category", "a": "float64"}},
    {"features": ["a", "marked"], "na_values": [-999], "on_missing": "keep"},
    {"features": ["whole", "a"], "weight": "weight", "base_margin": ["small"], "label": "amount"},
    {"features": ["a"], "label": "flag"},
    {"features": ["a"], "label": "color"},
    {"features": ["a", "small"], "preprocessors": [{"type": "StandardScaler", "columns": ["a"]}]},
    {"features": ["a", "whole"], "split": {"test": 0.3, "by_time": "whole"}},
    {"features": ["a", "whole"], "split": {"test": 0.3, "by_hash": "whole"}},
]


@pytest.mark.parametrize("own_splits", [False, True])
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_rows_on_disk_are_those_in_memory(load, tmp_path, small_batches, keys, own_splits):
    if own_splits and "split" in keys:
        keys = {**keys, "split": {**keys["split"], "val": 0.2, "test": None}}
    parts = {"train": part(), "test": part(["cow", "ant", "zebra"], count=40, seed=1)} if own_splits else {}
    path = save(tmp_path / "x", **parts)
    keys = {"split": {"test": None if own_splits else 0}, **keys}
    held, streamed = (load("huggingface", path=path, **keys, memory=one) for one in ("resident", "stream"))
    assert (held.info.memory, streamed.info.memory) == ("resident", "stream")
    of_place = {"memory": "", "memory_reason": "", "fingerprint": "", "mean": (), "std": (), "num_missing": {}}
    assert replace(held.info, **of_place) == replace(streamed.info, **of_place)
    np.testing.assert_allclose([held.info.mean, held.info.std], [streamed.info.mean, streamed.info.std], rtol=1e-6)
    assert {**held.encoding, "fill": []} == {**streamed.encoding, "fill": []}
    fill = (np.array(one.encoding["fill"], float) for one in (held, streamed))
    np.testing.assert_allclose(*fill, rtol=1e-6)
    streamed = pickle.loads(pickle.dumps(streamed))
    for name in held.splits:
        want, found = rows_of(held, name), rows_of(streamed, name)
        assert want.keys() == found.keys()
        for column, values in want.items():
            assert values.dtype == found[column].dtype
            np.testing.assert_allclose(values, found[column], rtol=1e-6)


def test_workers_share_the_rows_and_each_epoch_has_another_order(load, tmp_path, small_batches):
    path = save(tmp_path / "x")
    keys = {"features": ["whole"], "normalize": False, "split": {"test": 0}, "num_shuffle_rows": 50}
    train = load("huggingface", path=path, memory="stream", **keys).splits["train"]
    orders = []
    for seed in (1, 2):
        seen = [
            batch.x[:, 0]
            for rank in range(2)
            for batch in train.batches(EpochPlan(rank=rank, world_size=2, global_batch_size=20, seed=seed))
        ]
        orders.append(np.concatenate(seen))
        assert sorted(set(orders[-1].tolist())) == [3 * row for row in range(COUNT)]
    assert orders[0].tolist() != orders[1].tolist()


def test_what_labels_lack_is_told_as_of_rows_in_memory(load, tmp_path, small_batches):
    holes = columns()
    holes["label"] = [-1 if row == 123 else row % 3 for row in range(COUNT)]
    names = datasets.ClassLabel(names=NAMES)
    kinds = datasets.Features({**datasets.Dataset.from_dict(columns()).features, "label": names})
    save(tmp_path / "holes", train=datasets.Dataset.from_dict(holes, features=kinds))
    save(tmp_path / "other", train=part(), test=part(["ant", "bee", "cow"], count=40))
    for memory, row, place in (("resident", 124, "split 'test'"), ("stream", 24, r"test/data-.*\.arrow")):
        keys = {"features": ["a"], "memory": memory}
        with pytest.raises(DatasetError, match=rf"row {row} has label=-1, which is not a class"):
            load("huggingface", path=str(tmp_path / "holes"), **keys)
        with pytest.raises(DatasetError, match=rf"{place} has the class 'bee', which split 'train' lacks"):
            load("huggingface", path=str(tmp_path / "other"), **keys)


@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_a_feature_whose_classes_are_numbered_in_another_way_is_refused(load, open_rows, tmp_path, memory):
    def coloured(names):
        return part().cast_column("whole", datasets.ClassLabel(names=[f"{one}" for one in names]))

    numbers = list(range(3 * COUNT))
    keys = {"features": ["a", "whole"], "memory": memory}
    save(tmp_path / "x", train=coloured(numbers), test=coloured(numbers[::-1]))
    with pytest.raises(DatasetError, match=r"feature 'whole' is the number of a class, and split 'test' numbers them"):
        load("huggingface", path=str(tmp_path / "x"), **keys)
    assert load("huggingface", path=str(tmp_path / "x"), **{**keys, "features": ["a"]}).info.num_rows["test"] == COUNT
    same = save(tmp_path / "same", train=coloured(numbers), test=coloured(numbers))
    trained = load("huggingface", path=same, **keys)
    assert len(open_rows("huggingface", trained, path=same, **keys).x) == 2 * COUNT
    other = save(tmp_path / "new", train=coloured(numbers[::-1]))
    with pytest.raises(DatasetError, match=r"feature 'whole' .* numbers them otherwise than the data set of training"):
        open_rows("huggingface", trained, path=other, **keys)


@pytest.mark.parametrize("source", ["huggingface", "parquet"])
def test_views_of_texts_are_read_as_texts(load, tmp_path, source):
    table = pa.table(
        {"a": range(99), "view": pa.array(["x", "y", "z"] * 33, pa.string_view()), "label": [0, 1, 0] * 33}
    )
    datasets.Dataset(table).save_to_disk(str(tmp_path / "huggingface"))
    pq.write_table(table, tmp_path / "parquet")
    keys = {"path": str(tmp_path / source), "label": "label", "split": {"test": 0}}
    held, streamed = (load(source, **keys, memory=one) for one in ("resident", "stream"))
    assert held.info.categories == streamed.info.categories == {"view": ("x", "y", "z")}
    np.testing.assert_array_equal(rows_of(held, "train")["x"], rows_of(streamed, "train")["x"])


def test_a_large_table_is_streamed_by_itself(load, tmp_path, monkeypatch):
    path = save(tmp_path / "x")
    monkeypatch.setattr("rtrain.datasets.memory.free_bytes", lambda: 10_000)
    assert load("huggingface", path=path, features=["a"]).info.memory == "stream"
    with pytest.raises(DatasetError, match=r"memory is resident, but about .* don't fit"):
        load("huggingface", path=path, memory="resident")
    with pytest.raises(DatasetError, match=r"dataset\.group: groups can be kept together only in memory"):
        load("huggingface", path=path, features=["a"], group="small", label="whole", task="ranking")


def test_rows_in_another_order_than_their_files_have_to_be_in_memory(load, tmp_path, monkeypatch):
    path = save(tmp_path / "x")
    mixed = datasets.load_from_disk(path).select(
        list(range(COUNT))[::-1], indices_cache_file_name=str(tmp_path / "order")
    )
    monkeypatch.setattr(datasets, "load_from_disk", lambda folder: mixed)
    keys = {"features": ["whole"], "split": {"test": 0}}
    found = rows_of(load("huggingface", path=path, **keys), "train")["x"][:, 0]
    assert found.tolist() == [3.0 * row for row in range(COUNT - 1, -1, -1)]
    with pytest.raises(DatasetError, match=r"memory=stream: the rows of .* are not those of its files in their order"):
        load("huggingface", path=path, memory="stream", **keys)


@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_a_machine_without_whole_files_names_the_file(load, tmp_path, harm):
    path = save(tmp_path / "x", num_shards=1)
    train = load("huggingface", path=path, features=["a"], memory="stream", split={"test": 0}).splits["train"]
    there = pickle.loads(pickle.dumps(train))
    file = next(Path(path).glob("*.arrow"))
    if harm == "gone":
        shutil.rmtree(path)
    else:
        file.write_bytes(file.read_bytes()[:-1500])
    with pytest.raises(DatasetError, match=rf"{file}.*\n.*Each machine needs the file"):
        list(there.own_rows(0, 1))


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("empty", ["test", "validation", "train"])
def test_an_empty_split_is_named_and_may_be_left_out(load, tmp_path, empty, memory):
    rows = datasets.Dataset.from_dict({"a": [float(one) for one in range(30)], "y": [one % 2 for one in range(30)]})
    parts = {name: rows if name != empty else rows.select([]) for name in ("train", "validation", "test")}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "data"))
    keys = {"path": str(tmp_path / "data"), "label": "y", "memory": memory}
    split = {"validation": "val"}.get(empty, empty)
    with pytest.raises(DatasetError, match=rf"data: split '{split}' has no rows\.") as caught:
        load("huggingface", **keys)
    if empty == "train":
        assert caught.value.hint is None
        return
    assert f"dataset.split.{split}=0" in caught.value.hint
    found = load("huggingface", **keys, split={split: 0}).info.num_rows
    assert found == {name: 30 for name in ("train", "val", "test") if name != split}
