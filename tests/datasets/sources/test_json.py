from __future__ import annotations

import gzip
import json

import pandas as pd
import pyarrow as pa
import pytest

from rtrain.datasets.tables.formats.json import JsonFormat
from rtrain.errors import DatasetError

ROWS = [{"a": i, "b": i / 2, "y": "no" if i % 2 else "yes"} for i in range(20)]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS)
FORMS = {
    "list": json.dumps,
    "indented list": lambda rows: json.dumps(rows, indent=1),
    "columns": lambda rows: json.dumps({name: [row[name] for row in rows] for name in rows[0]}),
    "columns and a line end": lambda rows: json.dumps({name: [row[name] for row in rows] for name in rows[0]}) + "\n",
    "indented columns": lambda rows: json.dumps({name: [row[name] for row in rows] for name in rows[0]}, indent=1),
    "columns of pandas": lambda rows: pd.DataFrame(rows).to_json(),
    "indented columns of pandas": lambda rows: pd.DataFrame(rows).to_json(indent=2),
    "records of pandas": lambda rows: pd.DataFrame(rows).to_json(orient="records"),
    "lines of pandas": lambda rows: pd.DataFrame(rows).to_json(orient="records", lines=True),
    "lines": lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows),
}


@pytest.mark.parametrize("times", [1, 400, 10_000])
@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_known_whatever_the_size(load, tmp_path, form, times):
    (tmp_path / "x.json").write_text(FORMS[form](ROWS * times))
    dataset = load("json", path=str(tmp_path), label="y", split={"test": 0})
    assert dataset.info.num_rows == {"train": 20 * times}
    (columns,) = dataset.splits["train"].own_rows(0, 1)
    assert columns["x"][-20:].tolist() == [[row["a"], row["b"]] for row in ROWS]


@pytest.mark.parametrize("at", [1, 50, 3000, 150_000])
@pytest.mark.parametrize("odd", ["type", "name"])
def test_the_line_that_differs_is_named(load, tmp_path, odd, at):
    line = {"type": '{"a": "x", "y": 1}', "name": '{"a": 1, "y": 1, "a": 2}'}[odd]
    lines = [f'{{"a": {row}, "y": {row % 2}, "more": "{"x" * 40}"}}' for row in range(at)]
    (tmp_path / "x.jsonl").write_text("\n".join([*lines, line, *lines[:3]]))
    with pytest.raises(DatasetError, match=f"line {at + 1} has 'a' "):
        load("json", path=str(tmp_path), label="y")


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jsonl", LINES),
        ("x.ndjson.gz", LINES),
        ("x.json.zst", LINES),
        ("x.json", json.dumps(ROWS)),
        ("x.json", json.dumps(ROWS, indent=1)),
        ("x.json", json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]})),
        ("x.json", json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}, indent=1)),
    ],
)
def test_lines_lists_and_columns_are_the_same_table(load, tmp_path, memory, name, text):
    with pa.output_stream(str(tmp_path / name), compression="detect") as stream:
        stream.write(text.encode())
    dataset = load("json", path=str(tmp_path), label="y", memory=memory, split={"test": 0})
    assert dataset.info.class_names == ("no", "yes")
    assert dataset.info.feature_names == ("a", "b")
    (columns,) = dataset.splits["train"].own_rows(0, 1)
    assert columns["x"].tolist() == [[row["a"], row["b"]] for row in ROWS]


def test_whole_numbers_that_get_a_point_later_can_be_streamed(load, tmp_path):
    lines = [json.dumps({"a": i, "y": i % 2, "more": "x" * 30}) for i in range(100_000)] + ['{"a": 0.5, "y": 1}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    info = load("json", path=str(tmp_path), label="y", features=["a"], memory="stream", split={"test": 0}).info
    assert info.num_rows == {"train": 100_001}
    assert info.class_names == ("0", "1")


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ('{"a": 1, "y": 2}\n{"a": 1,\n', "line 2 is not a JSON object"),
        ('{"a": 1, "y": 2}\n{"a": "x", "y": 2}\n', "line 2 has 'a' as string, and a line before has it as number"),
        ("[1, 2]", "must be a table, not a list"),
        ('{"a": [1, 2], "y": [1]}', "'a' has 2 values, and 'y' has 1"),
        ('{"a": {"0": 1, "1": 2}, "y": {"0": 1, "2": 2}}', "the columns 'a' and 'y' have different rows"),
        ('{"a": 1, "y": 2}\n{"a" 1, "y": 1}\n', r"line 2 is not a JSON object: .*delimiter \(column 6\)"),
        ('{"a": 1, "y": 2}\n{"a": 1, "y": 1\n', r"line 2 is not a JSON object: .*delimiter \(column 16\)"),
        ('[{"a": 1}', "Expecting"),
    ],
)
def test_a_malformed_file_is_named(load, tmp_path, memory, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DatasetError, match=rf"x\.json: .*{message}"):
        load("json", path=str(tmp_path / "x.json"), label="y", memory=memory)


def test_broken_compression_is_named(load, tmp_path):
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(LINES.encode())[:-20])
    with pytest.raises(DatasetError, match=r"x\.jsonl\.gz"):
        load("json", path=str(tmp_path), label="y")


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("late", [1, 10, 19])
@pytest.mark.parametrize("as_text", [json.dumps, lambda rows: "\n".join(map(json.dumps, rows))])
def test_every_object_of_a_list_brings_its_columns(load, tmp_path, memory, late, as_text):
    rows = [{"a": i, "y": i % 2, **({"b": i / 2} if i >= late else {})} for i in range(20)]
    (tmp_path / "x.json").write_text(as_text(rows))
    keys = {"label": "y", "on_missing": "keep", "split": {"test": 0}, "normalize": False}
    dataset = load("json", path=str(tmp_path), memory=memory, **keys)
    assert dataset.info.feature_names in (("a", "b"), ("b", "a"))
    (columns,) = dataset.splits["train"].own_rows(0, 1)
    found = columns["x"][:, dataset.info.feature_names.index("b")].tolist()
    assert [value for value in found if value == value] == [i / 2 for i in range(late, 20)]


def test_a_byte_order_mark_is_named(load, tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n')
    with pytest.raises(DatasetError, match="byte order mark"):
        load("json", path=str(tmp_path / "t.jsonl"), label="y")


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize(("odd", "at"), [({"deep": "x"}, 1), ("x", 1), (1, 90_000)])
@pytest.mark.parametrize("form", ["list", "columns", "lines"])
def test_a_column_that_is_dropped_may_hold_values_of_several_types(load, tmp_path, form, at, odd, memory):
    rows = [{"a": i, "note": {"deep": 1} if i < at else odd, "n": i / 2, "y": i % 2} for i in range(at + 5)]
    (tmp_path / "x.json").write_text(FORMS[form](rows))
    keys = {"path": str(tmp_path), "label": "y", "memory": memory, "split": {"test": 0}, "normalize": False}
    dataset = load("json", drop=["no*"], **keys)
    assert dataset.info.feature_names == ("a", "n")
    assert dataset.info.num_rows == {"train": at + 5}
    with pytest.raises(DatasetError, match=r"x\.json"):
        load("json", **keys)


@pytest.mark.parametrize("line", ["[1]", "null", '"text"', "{"])
def test_a_line_that_is_no_row_is_named_where_a_dropped_column_holds_several_types(load, tmp_path, line):
    (tmp_path / "x.jsonl").write_text(f'{{"a": 1, "d": 1, "y": 0}}\n{{"a": 1, "d": "s", "y": 1}}\n{line}\n')
    with pytest.raises(DatasetError, match=r"x\.jsonl.*line 3 is not a JSON object"):
        load("json", path=str(tmp_path / "x.jsonl"), label="y", drop=["d"])


def test_an_object_of_objects_is_columns_as_in_pandas_and_a_row_where_an_object_is_a_line(tmp_path):
    text = '{"a": {"p": 1, "q": 2}, "b": {"p": 3, "q": 4}}'
    (tmp_path / "x.json").write_text(text)
    (tmp_path / "x.jsonl").write_text(text)
    reading = JsonFormat()
    assert reading.read(tmp_path / "x.json", ["a", "b"]).to_pandas().equals(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))
    assert reading.read(tmp_path / "x.jsonl", ["a", "b"]).to_pylist() == [json.loads(text)]
