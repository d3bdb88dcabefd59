"""A split of the data that has no labels, as those of competitions have, is told, and can be left out."""

import json
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import csv, parquet
from pydantic import TypeAdapter
from record_files import example, npy, write_records, write_shard

from rtrain.config.targets.builder import Builder
from rtrain.datasets.registry import confs, load_source
from rtrain.errors import DatasetError

COUNT = 40
HARMS = ("no column", "no labels", "unreadable")
TABLE = {"label": "y", "features": ["a"]}
TEXTS = {"label": "y", "text": "s"}


def write_lines(table, file):
    file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


FILES = {
    "csv": ("csv", csv.write_csv, TABLE),
    "jsonl": ("json", write_lines, TABLE),
    "parquet": ("parquet", parquet.write_table, TABLE),
    "texts.csv": ("text", csv.write_csv, TEXTS),
    "texts.jsonl": ("text", write_lines, TEXTS),
    "texts.parquet": ("text", parquet.write_table, TEXTS),
}


def rows(harm=None):
    """Return rows; what they lack says ``harm``."""
    found = {"a": [one / 8 for one in range(COUNT)], "s": [f"text {one}" for one in range(COUNT)]}
    labels = pa.array([None] * COUNT, pa.int64()) if harm == "no labels" else [one % 2 for one in range(COUNT)]
    return pa.table(found if harm == "no column" else {**found, "y": labels})


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("split", ["val", "test"])
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", FILES)
def test_of_files(load, tmp_path, kind, harm, split, memory):
    source, write, keys = FILES[kind]
    ending = kind.partition(".")[2] or kind
    write(rows(), tmp_path / f"train.{ending}")
    file = tmp_path / f"{split}.{ending}"
    write(rows(harm), file)
    if harm == "unreadable":
        file.write_bytes(b"\xff\xfe{[" * 9)
    keys = {"path": str(tmp_path), "memory": memory, **keys}
    with pytest.raises(DatasetError, match=rf"{split}\.{ending}.*(\n.*)*dataset\.split\.{split}=0$"):
        load(source, **keys)
    assert load(source, split={split: 0}, **keys).info.num_rows.keys() <= {"train", "test"} - {split}


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("split", ["val", "test"])
@pytest.mark.parametrize("kind", ["table", "text", "image"])
@pytest.mark.parametrize("harm", ["-1", "no column"])
def test_of_hugging_face_data_sets(load, tmp_path, kind, split, memory, harm):
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["no", "yes"])
    columns = rows().to_pydict()
    columns |= {"image": [Image.new("RGB", (4, 4), (one, 0, 0)) for one in range(COUNT)]} if kind == "image" else {}
    whole = datasets.Dataset.from_dict(columns).cast_column("y", names)
    none = datasets.Dataset.from_dict({**columns, "y": [-1] * COUNT}, features=whole.features)
    none = none.remove_columns("y") if harm == "no column" else none
    datasets.DatasetDict({"train": whole, {"val": "validation"}.get(split, split): none}).save_to_disk(str(tmp_path))
    keys = {"table": {"features": ["a"]}, "text": {"input": "s"}, "image": {"input": "image"}}[kind]
    keys |= {"path": str(tmp_path), "label": "y", "memory": memory}
    messages = {"-1": "row 1 has y=-1, which is not a class", "no column": "there is no column 'y', which train has"}
    with pytest.raises(DatasetError, match=rf"{messages[harm]}.*\n.*\n.*dataset\.split\.{split}=0$"):
        load("huggingface", **keys)
    assert load("huggingface", split={split: 0}, **keys).info.num_rows.keys() <= {"train", "test"} - {split}


def write_images(root):
    for row in range(8):
        file = root / "train" / f"class{row % 2}" / f"{row}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (row, 0, 0)).save(file)
    (root / "test").mkdir()
    Image.new("RGB", (4, 4)).save(root / "test" / "0.png")
    return {"path": str(root)}


def write_class(root):
    keys = write_images(root)
    (root / "test" / "unknown").mkdir()
    (root / "test" / "0.png").rename(root / "test" / "unknown" / "0.png")
    return keys


def write_texts(root):
    for row in range(8):
        file = root / "train" / f"class{row % 2}" / f"{row}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text {row}")
    (root / "test").mkdir()
    (root / "test" / "0.txt").write_text("text")
    return {"path": str(root)}


def write_arrays(root, **more):
    np.savez(root / "train.npz", x=np.random.default_rng(0).normal(size=(20, 2)), y=np.arange(20) % 2)
    np.savez(root / "test.npz", x=np.zeros((5, 2)), **more)
    return {"path": {"train": str(root / "train.npz"), "test": str(root / "test.npz")}}


def write_tfrecords(root, **more):
    write_records(root / "train.tfrecord", [example(a=[row / 2], label=[row % 2]) for row in range(20)])
    write_records(root / "test.tfrecord", [example(a=[1.0], **more)])
    return {"path": str(root)}


def write_shards(root):
    write_shard(root / "train-0.tar", [(f"{row}.{end}", b) for row in range(20) for end, b in sample(row)])
    write_shard(root / "test-0.tar", [("0.npy", npy(np.ones(2)))])
    return {"path": str(root)}


def sample(row):
    return ("npy", npy(np.full(2, row / 2))), ("cls", b"%d" % (row % 2))


def write_lines_of(train, test):
    """Return what writes two files for libsvm."""

    def write(root):
        (root / "a.train").write_text(train * 9)
        (root / "a.test").write_text(test * 9)
        return {"path": {"train": str(root / "a.train"), "test": str(root / "a.test")}}

    return write


def write_table(root):
    datasets = pytest.importorskip("datasets")
    train, test = (datasets.Dataset(rows(harm)) for harm in (None, "no column"))
    datasets.DatasetDict(train=train, test=test).save_to_disk(str(root / "x"))
    return {"path": str(root / "x"), "features": ["a"], "label": "y"}


OTHERS = {
    "loose images": ("images", write_images, {}),
    "images of another class": ("images", write_class, {}),
    "loose texts": ("text", write_texts, {"task": "classification"}),
    "arrays alone": ("numpy", write_arrays, {}),
    "arrays with -1": ("numpy", lambda root: write_arrays(root, y=-np.ones(5, int)), {}),
    "records without a label": ("tfrecord", write_tfrecords, {}),
    "records with two labels": ("tfrecord", lambda root: write_tfrecords(root, label=[0, 1]), {}),
    "samples without a label": ("webdataset", write_shards, {}),
    "sparse lines": ("libsvm", write_lines_of("1 0:1 1:2\n0 0:2 1:3\n", "0:1 1:2\n0:2 1:3\n"), {}),
    "dense lines": ("libsvm", write_lines_of("1\t0\t2\n0\t3\t4\n", "1\tno\t2\n"), {}),
    "Hugging Face": ("huggingface", write_table, {}),
    "function": ("python", lambda root: {"function": "unlabelled:load"}, {"label": "y", "features": ["a"]}),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_of_other_sources(load, tmp_path, monkeypatch, kind):
    (tmp_path / "unlabelled.py").write_text(
        "import pandas as pd\n\n\ndef load():\n"
        "    return {'train': pd.DataFrame({'a': range(20), 'y': [0, 1] * 10}), 'test': pd.DataFrame({'a': [1]})}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    source, write, keys = OTHERS[kind]
    (tmp_path / "data").mkdir()
    keys = {**write(tmp_path / "data"), **keys}
    make = partial(load_with_functions, source) if source == "python" else partial(load, source)
    with pytest.raises(DatasetError, match=r"test[\s\S]*dataset\.split\.test=0$"):
        make(**keys)
    assert make(split={"test": 0}, **keys).info.num_rows.keys() == {"train"}


NAMED = {
    "csv": ("csv", "csv", lambda file: csv.write_csv(rows(), file), TABLE),
    "json": ("json", "jsonl", lambda file: write_lines(rows(), file), TABLE),
    "parquet": ("parquet", "parquet", lambda file: parquet.write_table(rows(), file), TABLE),
    "parquet in part": (
        *("parquet", "parquet", lambda file: parquet.write_table(rows(), file), {**TABLE, "on_error": "skip"}),
    ),
    "text": ("text", "csv", lambda file: csv.write_csv(rows(), file), TEXTS),
    "numpy": ("numpy", "npz", lambda file: np.savez(file, x=np.ones((20, 2)), y=np.arange(20) % 2), {}),
    "libsvm": ("libsvm", "svm", lambda file: file.write_text("1 0:1 1:2\n0 0:2 1:3\n" * 9), {}),
    "tfrecord": (
        *("tfrecord", "tfrecord"),
        *(lambda file: write_records(file, [example(a=[1.0], label=[row % 2]) for row in range(20)]), {}),
    ),
    "webdataset": (
        *("webdataset", "tar"),
        *(lambda file: write_shard(file, [(f"{row}.{end}", b) for row in range(9) for end, b in sample(row)]), {}),
    ),
}


@pytest.mark.parametrize("split", ["val", "test"])
@pytest.mark.parametrize("kind", NAMED)
def test_what_is_left_out_need_not_be_there(load, tmp_path, kind, split):
    source, ending, write, keys = NAMED[kind]
    write(tmp_path / f"a.{ending}")
    path = {"train": str(tmp_path / f"a.{ending}"), split: str(tmp_path / f"gone.{ending}")}
    with pytest.raises(DatasetError, match=rf"dataset\.path\.{split}: .*gone.* does not exist"):
        load(source, path=path, **keys)
    assert load(source, path=path, split={split: 0}, **keys).info.num_rows.keys() <= {"train", "test"} - {split}


def load_with_functions(source, **keys):
    conf = TypeAdapter(confs()[source]).validate_python(keys)
    return load_source(source, Builder(allow=("unlabelled",))).load(conf)


def test_the_split_to_train_on_cannot_be_left_out(load, tmp_path):
    csv.write_csv(rows("no labels"), tmp_path / "train.csv")
    csv.write_csv(rows(), tmp_path / "test.csv")
    with pytest.raises(DatasetError) as raised:
        load("csv", path=str(tmp_path), **TABLE)
    assert "train" in raised.value.message
    assert "split" not in str(raised.value.hint)
