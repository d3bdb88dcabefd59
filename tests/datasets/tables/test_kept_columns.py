"""Columns that predictions keep come out as the file has them, whatever they look like."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import csv, parquet

import rtrain
from rtrain.datasets.tables.formats.json import JsonFormat
from rtrain.errors import DatasetError

NUM_ROWS = 40
VALUES = {
    "small": list(range(NUM_ROWS)),
    "2^53": [2**53 + place for place in range(NUM_ROWS)],
    "2^63": [2**63 + place for place in range(NUM_ROWS)],
    "2^70": [2**70 + place for place in range(NUM_ROWS)],
    "next to a fraction": [0.5, *(2**53 + place for place in range(1, NUM_ROWS))],
    "offsets": ["2020-01-01T03:04:00+02:00"] * NUM_ROWS,
    "midnights": ["2020-01-01T00:00:00Z"] * NUM_ROWS,
    "dates": ["2020-01-01"] * NUM_ROWS,
    "times of day": ["12:00"] * NUM_ROWS,
    "dates and a mark": ["2020-01-01", "n/a"] * (NUM_ROWS // 2),
    "dates and text": [*["2020-01-01"] * (NUM_ROWS - 1), "soon"],
}
BYTES = {
    "text": [f"cust-{place}".encode() for place in range(NUM_ROWS)],
    "no text": [bytes([place]) * 15 + b"\xff" for place in range(NUM_ROWS)],
    "no text in one row": [b"cust", *[None] * (NUM_ROWS - 2), b"\xff"],
}
KINDS = {
    "binary": pa.binary(),
    "large": pa.large_binary(),
    "dictionary": pa.dictionary(pa.int32(), pa.binary()),
    "fixed": pa.binary(16),
}


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def csv_text(rows):
    return "uid,a\n" + "".join(f"{row['uid']},{row['a']}\n" for row in rows)


SOURCES = {"jsonl": ("json", lines), "json": ("json", json.dumps), "csv": ("csv", csv_text)}


@pytest.fixture
def trained(load, tmp_path):
    rows = pa.table({"uid": range(NUM_ROWS), "a": np.arange(NUM_ROWS) / 2, "y": [0, 1] * (NUM_ROWS // 2)})
    csv.write_csv(rows, tmp_path / "train.csv")
    return load("csv", path=str(tmp_path / "train.csv"), label="y", ids=["uid"])


@pytest.mark.parametrize("ids", [["uid"], []])
@pytest.mark.parametrize("ending", SOURCES)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_the_file(trained, open_rows, tmp_path, name, ending, ids):
    source, text = SOURCES[ending]
    file = tmp_path / f"new.{ending}"
    file.write_text(text([{"uid": one, "a": 1.5} for one in VALUES[name]]))
    kept = open_rows(source, trained, path=str(file), label="y", ids=ids).kept["uid"]
    assert list(map(str, kept)) == list(map(str, VALUES[name]))
    as_text = open_rows(source, trained, path=str(file), label="y", ids=ids, dtypes={"uid": "string"}).kept["uid"]
    if not isinstance(VALUES[name][0], str):
        assert as_text == list(map(str, VALUES[name]))


@pytest.mark.parametrize("ids", [["uid"], []])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_text_or_hexadecimal(trained, open_rows, tmp_path, name, kind, ids):
    values = [one if one is None else one.ljust(16, b"-") for one in BYTES[name]]
    rows = pa.table({"uid": pa.array(values).cast(KINDS[kind]), "a": [1.5] * NUM_ROWS})
    parquet.write_table(rows, tmp_path / "new.parquet", row_group_size=NUM_ROWS // 2)
    kept = open_rows("parquet", trained, path=str(tmp_path / "new.parquet"), label="y", ids=ids).kept["uid"]
    expected = [one if one is None else one.decode() if name == "text" else one.hex() for one in values]
    assert kept == expected


def test_an_id_that_is_rounded_later_in_a_file_is_refused_with_its_row(trained, open_rows, tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.datasets.tables.formats.json.BLOCK_BYTES", 1_000)
    file = tmp_path / "new.jsonl"
    file.write_text(lines([{"uid": one, "a": 1.5} for one in [*[0.5] * 150, 2**53 + 1]]))
    with pytest.raises(DatasetError, match="row 151 has uid=9007199254740993"):
        open_rows("json", trained, path=str(file), label="y", ids=["uid"])
    kept = open_rows("json", trained, path=str(file), label="y", ids=["uid"], dtypes={"uid": "string"}).kept["uid"]
    assert kept[-1] == "9007199254740993"


def test_times_that_are_used_stay_times(load, open_rows, tmp_path):
    rows = [{"t": f"2020-01-{day:02d}T00:00:00Z", "a": day, "y": day % 2} for day in range(1, 29)]
    (tmp_path / "rows.jsonl").write_text(lines(rows))
    keys = {"path": str(tmp_path / "rows.jsonl"), "label": "y"}
    dataset = load("json", dtypes={"t": "int64"}, split={"test": 0.5, "by_time": "t"}, features=["a", "t"], **keys)
    chunk = open_rows("json", dataset, **keys)
    assert chunk.x[1, 1] > chunk.x[0, 1]
    assert list(chunk.kept) == ["y"]


def test_a_whole_file_has_the_times_of_its_parts(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(lines([{"t": "2020-01-01T03:04:00+02:00", "n": place} for place in range(3)]))
    reading = JsonFormat(times_as_text=["t", "n"])
    parts = pa.concat_tables(reading.batches(str(file), ["t", "n"]))
    assert reading.read(file, ["t", "n"]).to_pylist() == parts.to_pylist()
    assert parts["t"].to_pylist() == ["2020-01-01T03:04:00+02:00"] * 3


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_each_output_has_the_same_texts(tmp_path, ending):
    table = pa.table({"a": np.arange(200) / 2, "y": [0] * 100 + [1] * 100})
    parquet.write_table(table, tmp_path / "train.parquet")
    keys = ["dataset=parquet", f"dataset.path={tmp_path}/train.parquet", "dataset.label=y", "num_workers=0"]
    run = rtrain.fit("lightgbm", [*keys, "trainer.num_boost_round=1", f"run.root_dir={tmp_path}/runs"]).path
    columns = {"text": BYTES["text"], "hexadecimal": BYTES["no text"]}
    columns["large"] = pa.array(VALUES["2^70"], pa.decimal128(38, 0))
    parquet.write_table(pa.table({**columns, "a": [1.5] * NUM_ROWS}), tmp_path / "new.parquet")
    out = tmp_path / f"out{ending}"
    rtrain.predict(run, str(out), [f"dataset.path={tmp_path}/new.parquet"])
    texts = parquet.read_table(out).slice(0, 1).to_pylist() if ending == ".parquet" else [out.read_text()]
    assert all(one in str(texts) for one in ("cust-0", BYTES["no text"][0].hex(), str(2**70)))


OF_BYTES = {
    "binary": pa.binary(),
    "large": pa.large_binary(),
    "of two bytes": pa.binary(2),
    "view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.binary()),
}


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("kind", OF_BYTES)
@pytest.mark.parametrize("value", [b"ab", b"\xff\x00"], ids=["text", "not text"])
def test_what_is_proposed_for_a_feature_of_bytes_works(load, tmp_path, kind, value, memory):
    other = bytes(reversed(value))
    values = pa.array([value if row % 2 else other for row in range(60)], pa.binary()).cast(OF_BYTES[kind])
    table = pa.table({"k": values, "a": [float(row) for row in range(60)], "y": [row * 2.0 for row in range(60)]})
    parquet.write_table(table, tmp_path / "x.parquet")
    keys = {"path": str(tmp_path / "x.parquet"), "label": "y", "memory": memory}
    tried, words = set(), {}
    while True:
        try:
            found = load("parquet", **keys, **words)
            break
        except DatasetError as error:
            hints = re.findall(
                r"'dataset\.(\w+)=([^']*)'", error.hint.replace("with dataset.drop", "'dataset.drop=[k]'")
            )
            key, proposed = next(one for one in reversed(hints) if one not in tried)
            tried.add((key, proposed))
            words = {key: yaml.safe_load(proposed)}
    assert len(tried) <= 2
    assert "a" in found.info.feature_names
    if value == b"ab":
        assert found.info.feature_names == ("k", "a")
