"""Large files of text that are streamed in ranges of bytes, which the tests make small ones."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter, deque
from dataclasses import replace

import numpy as np
import pytest

from rtrain.datasets.base import EpochPlan, ShardLayout
from rtrain.datasets.tables.formats import byte_ranges
from rtrain.datasets.tables.formats import csv as csv_format
from rtrain.datasets.tables.formats import json as json_format
from rtrain.datasets.tables.formats.csv import CsvFormat
from rtrain.datasets.tables.formats.json import JsonFormat
from rtrain.errors import DatasetError

BROKEN = ['"a\nb"', '"x\r\ny,z"']
VALUES = ['"said ""hi"""', '5" pipe', "", '""', ' "q" ', "é", "x" * 50, "7", "1.5", "NA"]
ALL_IN_ONE = 1 << 40


@pytest.fixture
def cut(monkeypatch):
    """Return a function that sets how long ranges are, and the blocks that readers parse."""

    def cut(piece_bytes, block_bytes):
        monkeypatch.setattr(byte_ranges, "PIECE_BYTES", piece_bytes)
        monkeypatch.setattr(byte_ranges, "LOOK_BYTES", 8)
        for reading in (csv_format, json_format):
            monkeypatch.setattr(reading, "BLOCK_BYTES", block_bytes)

    return cut


def rows_of(reading, pieces, columns, widened=()):
    """Return the rows of some pieces; None if one can't be read."""
    try:
        tables = [table for piece in pieces for table in reading.batches(piece, columns, widened)]
    except DatasetError:
        return None
    return [row for table in tables for row in table.to_pylist()]


def compare(cut, draw, reading, file, may_be_refused=False):
    """Compare a file in ranges with the file as one piece, and return whether it is cut and can be read."""
    block_bytes = draw.choice([32, 64, 100, 200])
    cut(ALL_IN_ONE, block_bytes)
    try:
        reading.schema(file)
    except DatasetError:  # the first row is longer than a block
        return False, False
    columns, widened = draw.choice([["a", "b", "y"], ["y", "a"], ["b"]]), draw.choice([(), ("a",)])
    assert reading.pieces(file) == [str(file)]
    whole = rows_of(reading, [str(file)], columns, widened)
    cut(draw.choice([1, 50, 150, 400]), block_bytes)
    pieces = reading.pieces(file)
    found = rows_of(reading, pickle.loads(pickle.dumps(pieces)), columns, widened)
    assert found == whole or (may_be_refused and found is None)
    return len(pieces) > 1, found is not None


def csv_text(draw, values):
    """Return a table of up to 40 rows with what readers of CSV stumble over."""
    end, num_simple = draw.choice(["\n", "\n", "\r\n", "\r"]), draw.randrange(4)
    lines = [*[""] * draw.randrange(2), "a,b,y"]
    for number in range(draw.randrange(40)):
        own = [draw.choice(values) if place >= num_simple else str(number) for place in range(3)]
        mark = "\ufeff" if draw.random() < 0.02 else ""
        lines += [mark + ",".join(own), *[""] * (draw.random() < 0.1)]
    text = ("\ufeff" if draw.random() < 0.2 else "") + end.join(lines)
    return (text + draw.choice([end, "", end * 5])).encode()


@pytest.mark.parametrize("values", [VALUES, [*VALUES, *BROKEN]])
def test_a_csv_file_in_ranges_has_the_rows_of_the_whole_file(cut, tmp_path, values):
    seen = Counter()
    for seed in range(150):
        draw = random.Random(seed)
        (tmp_path / "x.csv").write_bytes(csv_text(draw, values))
        reading = CsvFormat(",", names=draw.choice([None, None, ["a", "b", "y"]]))
        seen[compare(cut, draw, reading, tmp_path / "x.csv", values != VALUES)] += 1
    assert min(seen[True, True], seen[True, False]) > 15


def json_text(draw):
    lines = []
    for number in range(draw.randrange(1, 40)):
        texts = ["x\ny", "}{", 'é"', "z" * draw.randrange(30)]
        row = {"a": draw.choice([number, 0.5, None]), "b": draw.choice(texts), "y": number}
        indent = 1 if draw.random() < 0.02 else None
        lines += [json.dumps(row, indent=indent), *[" " * draw.randrange(30)] * (draw.random() < 0.1)]
    end = draw.choice(["\n", "\n", "\r\n"])
    return (end.join(lines) + draw.choice([end, "", end * 40])).encode()


def test_json_lines_in_ranges_have_the_rows_of_the_whole_file(cut, tmp_path):
    seen = Counter()
    for seed in range(150):
        draw = random.Random(seed)
        (tmp_path / "x.jsonl").write_bytes(json_text(draw))
        seen[compare(cut, draw, JsonFormat(), tmp_path / "x.jsonl")] += 1
    assert min(seen[True, True], seen[True, False]) > 20


def test_a_range_that_would_end_inside_of_a_value_is_refused(cut, tmp_path):
    row = '"left","one\ntwo,three\nfour"\n'  # what is in its middle looks like a row, too
    (tmp_path / "x.csv").write_text("a,y\n" + row * 4)
    cut(48, 48)
    first, *_ = CsvFormat(",").pieces(tmp_path / "x.csv")
    assert first.end == len("a,y\n" + row + '"left","one\ntwo,three\n')
    with pytest.raises(DatasetError, match=r"x\.csv: .*a quoted value does not end"):
        list(CsvFormat(",").batches(first, ["a", "y"]))


def test_values_with_line_breaks_are_not_cut(cut, tmp_path):
    texts = ["Well.\n" * (row % 5) + "and so on, " * (row % 7) for row in range(300)]
    lines = [f'{row},"{text}",{row % 2}\n' for row, text in enumerate(texts)]
    (tmp_path / "x.csv").write_text("a,text,y\n" + "".join(lines))
    cut(1000, 250)
    pieces = CsvFormat(",").pieces(tmp_path / "x.csv")
    assert len(pieces) > 5
    assert [row["a"] for row in rows_of(CsvFormat(","), pieces, ["a", "text", "y"])] == list(range(300))


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst"])
def test_compressed_files_are_one_piece(cut, tmp_path, name):
    (tmp_path / name).write_bytes(b"\0" * 1000)
    cut(100, 50)
    assert CsvFormat(",").pieces(tmp_path / name) == [str(tmp_path / name)]


def test_files_that_are_read_from_their_beginning_are_one_piece(cut, tmp_path):
    table, document = tmp_path / "x.csv", tmp_path / "x.json"
    table.write_text("a,y\n" + "1, 2\n" * 100)
    document.write_text(json.dumps([{"a": row, "y": row} for row in range(100)]))
    cut(100, 50)
    assert CsvFormat(",", skipinitialspace=True).pieces(table) == [str(table)]
    assert JsonFormat().pieces(document) == [str(document)]
    assert len(CsvFormat(",").pieces(table)) > 3
    cut(len(table.read_bytes()), 50)
    assert CsvFormat(",").pieces(table) == [str(table)]


def write(folder, source, num_rows=300):
    """Write rows whose first feature is their number, and whose types show late."""
    draw = random.Random(0)
    rows = [
        {"a": row, "b": row + 0.5 if row > 200 else row, "c": draw.choice(["red", "two\tone"]), "y": row % 3}
        for row in range(num_rows)
    ]
    if source == "csv":
        text = "a,b,c,y\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    else:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
    file = folder / f"x.{source}"
    file.write_text(text)
    return file


@pytest.fixture(params=["csv", "json"])
def table(request, tmp_path, load, cut):
    """Return a function that loads the table in ranges, and the one that loads it as it is otherwise."""
    file = write(tmp_path, request.param)

    def read(piece_bytes=800, **keys):
        cut(piece_bytes, 400)
        common = {"path": str(file), "label": "y", "memory": "stream", "normalize": False, "split": {"test": 0}}
        return load(request.param, **{**common, **keys})

    return read


def passes(split, world_size, **more):
    """Return the numbers of the rows that each worker gets in a pass."""
    plans = [EpochPlan(rank=r, world_size=world_size, global_batch_size=16, seed=3, **more) for r in range(world_size)]
    return [[row for batch in split.batches(plan) for row in batch.x[:, 0].astype(int).tolist()] for plan in plans]


@pytest.mark.parametrize("split", [{"test": 0}, {"val": 0.2, "test": 0.2}])
@pytest.mark.parametrize("keys", [{}, {"limit": 100}, {"dtypes": {"a": "float64"}}])
def test_ranges_change_nothing_but_the_order_of_a_shuffled_pass(table, split, keys):
    found, whole = table(split=split, **keys), table(ALL_IN_ONE, split=split, **keys)
    assert (found.info.num_ranges > 5, whole.info.num_ranges) == (True, 0)
    assert replace(found.info, num_ranges=0, memory_reason="") == replace(whole.info, memory_reason="")
    for name, rows in found.splits.items():
        (one,), (other,) = (passes(each, 1, shuffle=False) for each in (rows, whole.splits[name]))
        assert one == other == sorted(one)


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_each_row_comes_to_one_worker(table, world_size):
    train = table(num_shuffle_rows=20).splits["train"]
    assert sorted(row for own in passes(train, world_size) for row in own) == list(range(300))
    shares = [np.concatenate([one["x"][:, 0] for one in train.own_rows(r, world_size)]) for r in range(world_size)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(300))


@pytest.mark.parametrize("world_size", [1, 2])
def test_a_pass_is_resumed_in_its_middle(table, world_size):
    train = table(num_shuffle_rows=20).splits["train"]
    whole = passes(train, world_size, epoch=1)
    layout = ShardLayout(num_workers=world_size, rows_per_step=16)
    rest = passes(pickle.loads(pickle.dumps(train)), world_size, epoch=1, skip_rows=160, began=layout)
    assert rest == [own[160 // world_size :] for own in whole]


def test_a_worker_reads_its_own_ranges(table, monkeypatch, tmp_path):
    train, read, was = table().splits["train"], [], byte_ranges._Blocks.read
    monkeypatch.setattr(byte_ranges._Blocks, "read", lambda self, size: read.append(was(self, size)) or read[-1])
    monkeypatch.setattr("rtrain.datasets.tables.formats.csv.first_line", None)  # only the first range begins with it
    shares = []
    for rank in range(1, 3):
        deque(train.chunks(range(rank * len(train.pieces) // 3, (rank + 1) * len(train.pieces) // 3)), maxlen=0)
        shares.append(sum(map(len, read)))
        read.clear()
    (file,) = tmp_path.iterdir()
    assert max(shares) < file.stat().st_size / 3 + 1000


def test_a_pass_of_a_worker_reads_about_its_share(table, monkeypatch, tmp_path):
    train, read, was = table().splits["train"], [], byte_ranges._Blocks.read
    monkeypatch.setattr(byte_ranges._Blocks, "read", lambda self, size: read.append(was(self, size)) or read[-1])
    passes(train, 3)
    (file,) = tmp_path.iterdir()
    size = file.stat().st_size
    assert size <= sum(map(len, read)) < size + 4 * 1300  # each border between workers is in one range


@pytest.mark.parametrize("keys", [{}, {"dtypes": {"b": "int64"}}])
def test_messages_count_rows_from_the_beginning_of_the_file(cut, load, open_rows, tmp_path, keys):
    lines = [f"{row},{row},{row % 2}\n" for row in range(300)]
    file, new = tmp_path / "x.csv", tmp_path / "new.csv"
    file.write_text("a,b,y\n" + "".join(lines))
    cut(800, 400)
    common = {"label": "y", "memory": "stream", "split": {"test": 0}, "on_missing": "error", **keys}
    dataset = load("csv", path=str(file), **common)
    lines[250] = "250,,0\n" if not keys else "250,oops,0\n"
    new.write_text("a,b,y\n" + "".join(lines))
    with pytest.raises(DatasetError, match=r"new\.csv: .*row 251\b"):
        list(load("csv", path=str(new), **common, normalize=False).splits["train"].chunks())
    with pytest.raises(DatasetError, match=r"new\.csv: .*row 251\b"):
        open_rows("csv", dataset, path=str(new), **common)


def test_predictions_come_in_the_order_of_the_data(table, open_rows, tmp_path):
    source = "csv" if (tmp_path / "x.csv").exists() else "json"
    dataset = table()
    keys = {"path": str(tmp_path / f"x.{source}"), "label": "y"}
    assert open_rows(source, dataset, **keys, with_labels=True).x[:, 0].tolist() == list(range(300))


def test_a_value_of_another_type_in_a_late_range_is_named(cut, load, tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n" + "1,0\n" * 500 + "1,oops\n")
    cut(400, 200)
    with pytest.raises(DatasetError, match=r"x\.csv: column 'y' starts with int64 values, .*'oops'"):
        load("csv", path=str(tmp_path / "x.csv"), label="y", memory="stream")


@pytest.mark.parametrize("wanted", [1, 10, 10**6])
def test_statistics_see_all_ranges_of_a_file_or_none(table, monkeypatch, wanted):
    """They are those of the file as one piece, with which older versions began runs that are resumed."""
    monkeypatch.setattr("rtrain.datasets.tables.load.STATISTICS_ROWS", wanted)
    whole, ranges = (table(piece_bytes, normalize=True).info for piece_bytes in (ALL_IN_ONE, 800))
    assert ranges.num_ranges > 1
    np.testing.assert_allclose(ranges.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(ranges.std, whole.std, rtol=1e-9)
