"""Whatever a file holds, what comes out is a dataset or a DatasetError that names the file."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from record_files import example, framed, images, write_shard

from rtrain.errors import DatasetError

ROWS = range(40)


def parquet_bytes():
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [one / 7 for one in ROWS], "c": ["pq"[one % 2] for one in ROWS], "y": ROWS}), stream)
    return stream.getvalue()


def npz_bytes():
    stream = io.BytesIO()
    np.savez(stream, x=np.arange(80.0).reshape(40, 2), y=np.arange(40) % 2)
    return stream.getvalue()


GOOD = {
    "csv": ("rows.csv", "a,c,y\n" + "".join(f"{one / 7},{'pq'[one % 2]},{one}\n" for one in ROWS)),
    "json": ("rows.jsonl", "".join(f'{{"a": {one / 7}, "c": "p", "y": {one}}}\n' for one in ROWS)),
    "libsvm": ("rows.libsvm", "".join(f"{one % 2} 1:{one / 7} 3:{one}\n" for one in ROWS)),
    "parquet": ("rows.parquet", parquet_bytes()),
    "numpy": ("rows.npz", npz_bytes()),
    "tfrecord": ("rows.tfrecord", b"".join(framed(example(a=[one / 7], label=[one % 2])) for one in ROWS)),
}
JUNK = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"[" * 5_000,
    b'{"a":' * 5_000,
    b"99999999999:1 ",
    b"nan",
    b"1e999",
    b'"',
    b"\n\n",
    b",",
]


def keys_of(source, path):
    return {"path": str(path), **({"label": "y"} if source in ("csv", "json", "parquet") else {})}


def broken(content, seed):
    """Return the content with something wrong: cut off, bytes changed, junk put in, a part twice or gone."""
    rng = np.random.default_rng(seed)
    first, last = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    junk = JUNK[seed % len(JUNK)]
    changed = bytearray(content)
    for place in rng.integers(0, len(content), 3).tolist():
        changed[place] ^= int(rng.integers(1, 256))
    ways = [content[:first], bytes(changed), content[:first] + junk + content[first:]]
    ways += [content[:first] + content[last:], content[:last] + content[first:], junk + content, content + junk]
    return ways[int(rng.integers(len(ways)))]


@pytest.mark.parametrize("source", GOOD)
def test_a_broken_file_is_a_dataset_or_a_dataset_error(load, tmp_path, source):
    name, content = GOOD[source]
    content = content.encode() if isinstance(content, str) else content
    (tmp_path / name).write_bytes(content)
    load(source, **keys_of(source, tmp_path / name))
    refused = 0
    for seed in range(60):
        path = tmp_path / str(seed) / name
        path.parent.mkdir()
        path.write_bytes(broken(content, seed))
        try:
            load(source, **keys_of(source, path))
        except DatasetError as error:
            refused += str(path.parent) in str(error)
    assert refused > 5


def test_a_broken_shard_is_a_dataset_or_a_dataset_error(load, tmp_path):
    content = Path(write_shard(tmp_path / "good.tar", images(range(6)))).read_bytes()
    refused = 0
    for seed in range(30):
        path = tmp_path / f"broken-{seed}.tar"
        path.write_bytes(broken(content, seed))
        try:
            load("webdataset", path=str(path))
        except DatasetError as error:
            refused += path.name in str(error)
    assert refused > 5


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("x.jsonl", '{"x": 1, "y": 2}\n' + "[" * 100_000 + "\n", 2),
        ("x.jsonl", '{"x": 1, "y": 2}\n' * 3 + '{"a":' * 100_000 + "1" + "}" * 100_000 + "\n", 4),
        ("x.json", "[" * 100_000, None),
        ("x.libsvm", "1 1:2\n1 1:2 99999999999:3\n", 2),
        ("x.libsvm", "1 1:2 2147483646:3\n0 1:1\n", 1),
        ("x.libsvm", "1 1:2\n0 -1:1\n", 2),
    ],
)
@pytest.mark.parametrize("memory", ["resident", "stream"])
def test_depth_and_columns_beyond_all_measure_are_named(load, tmp_path, name, content, line, memory):
    (tmp_path / name).write_text(content)
    source, label = ("libsvm", {}) if name.endswith("libsvm") else ("json", {"label": "y", "memory": memory})
    with pytest.raises(DatasetError) as raised:
        load(source, path=str(tmp_path / name), **label)
    assert str(tmp_path / name) in str(raised.value)
    assert line is None or f"line {line}" in str(raised.value)


def test_brackets_in_texts_are_no_depth(load, tmp_path):
    rows = [f'{{"c": "{"[{" * 3_000}{one % 2}", "d": "\\"[", "y": {one}}}\n' for one in range(8)]
    (tmp_path / "x.jsonl").write_text("".join(rows))
    dataset = load("json", path=str(tmp_path / "x.jsonl"), label="y", task="regression", split={"test": 0})
    assert dataset.info.num_rows == {"train": 8}


@pytest.mark.parametrize("source", ["csv", "json", "libsvm", "tfrecord", "numpy", "images", "webdataset"])
@pytest.mark.parametrize("place", ["/dev/null", "/dev/zero", "pipe"])
def test_what_is_no_file_is_refused(load, tmp_path, source, place):
    if place == "pipe":
        place = str(tmp_path / "pipe")
        os.mkfifo(place)
    with pytest.raises(DatasetError, match="a device or a pipe"):
        load(source, **keys_of(source, place))


def test_a_header_of_more_than_a_megabyte_is_read(load, tmp_path):
    names = [f"{'x' * 500}{number}" for number in range(3_000)]
    row = ",".join("1" for _ in names)
    (tmp_path / "x.csv").write_text(f"{','.join(names)},y\n{row},0\n{row},1\n{row},2\n")
    for memory in ("resident", "stream"):
        info = load("csv", path=str(tmp_path / "x.csv"), label="y", memory=memory, split={"test": 0}).info
        assert info.input_shape == (3_000,)


def folder_of(source, folder):
    """Write a folder that a source reads whole, and return a file of it."""
    if source in GOOD:
        name, content = GOOD[source]
        names = [f"{number}-{name}" for number in range(3)]
    else:
        ending, content = ("png", pixels()) if source == "images" else ("txt", "some text")
        names = [f"{name}/{number}.{ending}" for name in "ab" for number in range(20)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / names[0]


def pixels():
    stream = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(stream, "PNG")
    return stream.getvalue()


FILES = ("csv", "json", "parquet", "tfrecord", "text")


@pytest.mark.parametrize(
    ("source", "form"), [("images", "folder"), *((one, form) for one in FILES for form in ("folder", "glob"))]
)
def test_what_was_not_fetched_is_not_left_out(load, tmp_path, source, form):
    """As in a clone of git-annex or DVC: a link to where the content would be."""
    there = folder_of(source, tmp_path)
    link = there.with_name(f"zz{''.join(there.suffixes)}")
    path = str(tmp_path) if form == "folder" else f"{there.parent}/*{there.suffix}"
    keys = {**keys_of(source, path), **({"label": "label"} if source == "tfrecord" else {})}
    load(source, **keys)
    link.symlink_to("../.git/annex/objects/1f/zz")
    with pytest.raises(
        DatasetError, match=r"zz\.\w+ is a link to \.\./\.git/annex/objects/1f/zz, which does not exist"
    ):
        load(source, **keys)


def test_images_that_were_not_fetched_may_be_skipped_and_are_counted(load, tmp_path):
    there = folder_of("images", tmp_path)
    there.with_name("00.png").symlink_to("/nowhere.png")
    assert load("images", path=str(tmp_path), on_error="skip").info.num_skipped == 1
