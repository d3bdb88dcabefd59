"""A split of the data that has no labels, as those of competitions have, is told, and can be left out."""

import json

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

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
def test_of_hugging_face_data_sets(load, tmp_path, kind, split, memory):
    datasets = pytest.importorskip("datasets")
    from PIL import Image

    names = datasets.ClassLabel(names=["no", "yes"])
    columns = rows().to_pydict()
    columns |= {"image": [Image.new("RGB", (4, 4), (one, 0, 0)) for one in range(COUNT)]} if kind == "image" else {}
    whole = datasets.Dataset.from_dict(columns).cast_column("y", names)
    none = datasets.Dataset.from_dict({**columns, "y": [-1] * COUNT}, features=whole.features)
    datasets.DatasetDict({"train": whole, {"val": "validation"}.get(split, split): none}).save_to_disk(str(tmp_path))
    keys = {"table": {"features": ["a"]}, "text": {"input": "s"}, "image": {"input": "image"}}[kind]
    keys |= {"path": str(tmp_path), "label": "y", "memory": memory}
    with pytest.raises(DatasetError, match=rf"row 1 has y=-1, which is no class.*\n.*\n.*dataset\.split\.{split}=0$"):
        load("huggingface", **keys)
    assert load("huggingface", split={split: 0}, **keys).info.num_rows.keys() <= {"train", "test"} - {split}


def test_the_split_to_train_on_cannot_be_left_out(load, tmp_path):
    csv.write_csv(rows("no labels"), tmp_path / "train.csv")
    csv.write_csv(rows(), tmp_path / "test.csv")
    with pytest.raises(DatasetError) as raised:
        load("csv", path=str(tmp_path), **TABLE)
    assert "train" in raised.value.message
    assert "split" not in str(raised.value.hint)
