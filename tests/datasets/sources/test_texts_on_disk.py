"""Texts of files that stay on disk are those that would be in memory; each machine writes them once."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil

import pyarrow as pa
import pytest
from pyarrow import parquet
from rows_on_disk import check_same_rows

from rtrain.datasets.texts import from_files
from rtrain.datasets.texts import read as reading
from rtrain.errors import DatasetError

NUM_ROWS = 2600
ROWS = [
    {
        "text": f"{'a b c '[: number % 7]}text {number}\u00e9",
        "label": "good" if number % 3 else "bad",
        "amount": number if number < NUM_ROWS // 2 else number / 2,
        "author": f"author {number // 10}",
    }
    for number in range(NUM_ROWS)
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of what is written; files are read a few bytes at a time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(reading, "PIECE_BYTES", 1001)
    return tmp_path / "cache" / "rtrain" / "texts"


def write_table(file, rows):
    if file.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), file)
    elif file.suffix == ".jsonl":
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        mark = "\t" if ".tsv" in file.name else ","
        lines = [mark.join(map(str, row.values())) for row in ({name: name for name in rows[0]}, *rows)]
        content = "".join(f"{line}\n" for line in lines).encode()
        file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def write_tables(folder, ending):
    """Two files, of which the first has whole amounts alone."""
    folder.mkdir()
    for number, part in enumerate((ROWS[: NUM_ROWS // 2], ROWS[NUM_ROWS // 2 :])):
        write_table(folder / f"{number}{ending}", part)


def write_folders(folder):
    for number, row in enumerate(ROWS[:300]):
        file = folder / row["label"] / f"{number:04}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{row['text']}\nand\n\nmore")


def write_lines(folder):
    folder.mkdir()
    lines = [line for row in ROWS for line in (row["text"], "  ")]
    (folder / "a.txt").write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "empty.txt").write_text("")


def write_splits(folder):
    folder.mkdir()
    for name, part in (("train", ROWS[:1000]), ("val", ROWS[1000:1500]), ("test", ROWS[1500:2000])):
        write_table(folder / f"{name}.jsonl", part)


TABLES = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet")
WAYS = {
    **{f"classes{one}": (lambda folder, one=one: write_tables(folder, one), {"label": "label"}) for one in TABLES},
    **{f"numbers{one}": (lambda folder, one=one: write_tables(folder, one), {"label": "amount"}) for one in TABLES},
    "by group": (
        lambda folder: write_tables(folder, ".csv"),
        {"label": "label", "split": {"test": 0.2, "by_group": "author"}},
    ),
    "by column": (
        lambda folder: write_tables(folder, ".parquet"),
        {"label": "amount", "split": {"by_column": {"column": "label", "test": ["bad"]}}},
    ),
    "shares": (lambda folder: write_tables(folder, ".csv"), {"label": "label", "split": {"test": 0.1, "val": 0.3}}),
    "few": (lambda folder: write_tables(folder, ".csv"), {"label": "label", "limit": 50}),
    "splits": (write_splits, {"label": "label"}),
    "a table to model": (lambda folder: write_tables(folder, ".jsonl"), {}),
    "folders": (write_folders, {}),
    "lines in folders": (write_folders, {"each": "line"}),
    "folders by file": (write_folders, {"split": {"test": 0.2, "by_hash": "file"}}),
    "lines": (write_lines, {}),
    "some lines": (write_lines, {"limit": 100, "split": {"val": 0.5}}),
    "files": (write_folders, {"each": "file", "task": "language-modeling"}),
}


@pytest.mark.parametrize(("write", "keys"), WAYS.values(), ids=WAYS)
def test_they_are_the_rows_that_texts_in_memory_are(load, tmp_path, write, keys):
    write(tmp_path / "x")
    path = str(tmp_path / "x")
    check_same_rows(*(load("text", path=path, **keys, memory=memory) for memory in ("resident", "stream")))


def test_files_are_read_once_until_they_change(load, tmp_path, monkeypatch, cache):
    write_tables(tmp_path / "x", ".csv")
    keys = {"path": str(tmp_path / "x"), "label": "label", "memory": "stream"}
    first = load("text", **keys)
    read = []
    monkeypatch.setattr(from_files, "read_table", lambda file, *_: read.append(file) or reading.read_table(file, *_))
    again = load("text", **keys, seed=1, split={"test": 0.5})
    assert (read, len(again.splits["test"].x(range(10)))) == ([], 10)
    assert len([one for one in cache.iterdir() if one.is_dir()]) == 1
    later = (tmp_path / "x" / "0.csv").stat().st_mtime + 5
    os.utime(tmp_path / "x" / "0.csv", (later, later))
    changed = load("text", **keys)
    assert len(read) == 2
    assert changed.info.fingerprint != first.info.fingerprint
    shutil.rmtree(cache)
    assert load("text", **keys).info.fingerprint == changed.info.fingerprint


def test_they_are_not_in_what_workers_get_who_need_the_file(load, tmp_path, cache):
    (tmp_path / "x.txt").write_text("long " * 10_000 + "\n" + "short\n" * 100)
    split = load("text", path=str(tmp_path / "x.txt"), memory="stream").splits["train"]
    sent = pickle.dumps(split)
    assert len(sent) < 10_000
    shutil.rmtree(cache)
    with pytest.raises(DatasetError, match=r"\.arrow can't be mapped.*\nEach machine needs the file"):
        next(pickle.loads(sent).own_rows(0, 1))


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        ([{"text": ["a", "b"], "label": ["x", "y"]}], {}, "'text' has lists of words, which are held in memory"),
        ([{"text": "a", "label": "x"}], {"tokenizer": "bytes", "label": None}, "tokenizer=bytes holds all tokens"),
    ],
)
def test_what_is_always_in_memory_is_refused_on_disk(load, tmp_path, cache, rows, keys, message):
    write_table(tmp_path / "x.jsonl", rows)
    with pytest.raises(DatasetError, match=message):
        load("text", path=str(tmp_path / "x.jsonl"), memory="stream", **{"label": "label", **keys})
    assert not cache.exists()


GOOD = [
    {"text": f"good {number}", "label": "x" if number % 2 else "y", "amount": number, "by": number // 2}
    for number in range(1200)
]
MISTAKES = {
    "no text": [{**GOOD[0], "text": None}],
    "no label": [{**GOOD[0], "label": None}],
    "column lacks": [{"text": "a", "label": "x", "by": 0}],
    "text for a number": [{**GOOD[0], "amount": "many"}],
    "a number for text": [{**GOOD[0], "text": 1}],
    "infinite": [{**GOOD[0], "amount": 1e400}],
}


OF_TEXT_FILES = ("text for a number", "a number for text")


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("label", ["label", "amount"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_as_they_are_in_memory(load, tmp_path, cache, mistake, label, ending):
    if ending == ".parquet" and mistake in OF_TEXT_FILES:
        pytest.skip("a column of Parquet has one type")
    folder = tmp_path / "x"
    folder.mkdir()
    for number, rows in enumerate((GOOD, GOOD[:3], GOOD[3:5] + MISTAKES[mistake], GOOD[5:8])):
        write_table(folder / f"{number}{ending}", rows)
    told = {}
    for memory in ("resident", "stream"):
        try:
            load("text", path=str(folder), label=label, memory=memory, split={"by_group": "by", "test": 0.1})
        except DatasetError as error:
            told[memory] = str(error)
    assert told.get("resident") == told.get("stream")
    assert not list(cache.glob("*.tmp"))


def test_bytes_that_are_no_text_are_named_by_their_place_in_the_file(load, tmp_path):
    (tmp_path / "x.txt").write_bytes(b"good line\n" * 500 + b"b\xffd\n")
    with pytest.raises(DatasetError, match=r"x\.txt: byte 5001 is not UTF-8"):
        load("text", path=str(tmp_path / "x.txt"), memory="stream")


def test_a_disk_that_is_full_is_told_with_what_to_do(load, tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_text("a\nb\n")
    (tmp_path / "cache").write_text("a file in place of the folder")
    with pytest.raises(DatasetError, match=r"texts can't be written to the cache.*\nLet XDG_CACHE_HOME"):
        load("text", path=str(tmp_path / "x.txt"), memory="stream")
