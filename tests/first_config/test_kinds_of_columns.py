"""``rtrain init``: what each column of a table becomes that is one value or nothing, a date as text, or a code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import csv, parquet

import rtrain
from rtrain.cli.app import run

ROWS = 300
Y = [row % 7 + row / 1000 for row in range(ROWS)]


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(columns, ending):
    """Write a table with a feature and a label that are numbers, and other columns; return its file."""
    table = pa.table({"x": np.arange(ROWS) % 11 * 0.5, **columns, "y": Y})
    if ending == "jsonl":
        Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        (csv.write_csv if ending == "csv" else parquet.write_table)(table, f"t.{ending}")
    return f"t.{ending}"


def first_config(file, output="t.yaml"):
    assert run(["init", "--dataset", file, "--label", "y", "-o", output]) == 0
    return yaml.safe_load(Path(output).read_text())["dataset"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("value", ["yes", 3.5, 7, -999, True], ids=str)
@pytest.mark.parametrize("rows", [[17], range(0, ROWS, 3), range(1, ROWS)], ids=["one", "some", "all but one"])
def test_one_value_or_nothing_is_a_feature(value, rows, ending):
    values = [value if row in rows else None for row in range(ROWS)]
    written = first_config(write({"pool": values, "same": [value] * ROWS}, ending))
    assert written["drop"] == ["same"]
    assert "pool" not in written.get("ids", [])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_model_trains_on_columns_of_one_value_or_nothing(ending):
    columns = {"pool": ["yes", None, None] * (ROWS // 3), "flag": [None, True] * (ROWS // 2)}
    file = write({**columns, "once": ["x", *[None] * (ROWS - 1)]}, ending)
    first_config(file, f"{file}.yaml")
    trained = rtrain.fit(f"{file}.yaml", ["trainer.num_boost_round=3"])
    assert trained.manifest.dataset["feature_names"] == ["x", "pool", "flag", "once"]


ISO = [f"2021-02-{1 + row % 28:02d}" for row in range(ROWS)]
DATES = {
    "American": [f"{1 + row % 12}/{1 + row % 28}/2021" for row in range(ROWS)],
    "short": [f"{1 + row % 12}/{1 + row % 28}/21" for row in range(ROWS)],
    "German": [f"{1 + row % 28}.{1 + row % 12}.2021" for row in range(ROWS)],
    "months": [f"{2000 + row % 20}-{1 + row % 12:02d}" for row in range(ROWS)],
    "month first": [f"{1 + row % 12:02d}/{2000 + row % 20}" for row in range(ROWS)],
    "typo": ["2021-02-30", *ISO[1:]],
    "unknown": ["unknown", *ISO[1:]],
    "marks": ["?", "-", "n/a", *ISO[3:]],
    "names of months": [f"{1 + row % 28} {('Jan', 'March')[row % 2]} 2021" for row in range(ROWS)],
    "time of day": [f"{1 + row % 12}/{1 + row % 28}/2021 {row % 12}:07 PM" for row in range(ROWS)],
    "all differ": [f"{1 + row // 28}/{1 + row % 28}/2021" for row in range(ROWS)],
}
NO_DATES = {
    "versions": [f"1.{row % 9}.2{row % 4}" for row in range(ROWS)],
    "addresses": [f"10.0.{row % 9}.{row % 5}" for row in range(ROWS)],
    "fractions": [f"{1 + row % 3}/{2 + row % 4}" for row in range(ROWS)],
    "codes": [f"{1 + row % 12:02d}-{1 + row % 28:02d}" for row in range(ROWS)],
    "sort codes": [f"{10 + row % 7}-{12 + row % 5}-21" for row in range(ROWS)],
    "seasons": [f"{2000 + row % 11}-{1 + row % 11:02d}" for row in range(ROWS)],
    "with letters": [f"A-2021-0{1 + row % 9}" for row in range(ROWS)],
    "times": [f"{row % 24}:30 h" for row in range(ROWS)],
    "few": [("2021-01", "later", "never")[row % 3] for row in range(ROWS)],
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", DATES)
def test_dates_as_text_are_left_out_with_a_note(name, ending):
    assert first_config(write({"day": DATES[name]}, ending))["drop"] == ["day"]
    assert "dates written as text" in Path("t.yaml").read_text()


@pytest.mark.parametrize("name", NO_DATES)
def test_what_may_be_something_else_than_a_date_is_a_feature(name):
    assert not {"drop", "ids"} & set(first_config(write({"day": NO_DATES[name]}, "csv")))


def test_categories_that_parquet_declares_are_features_whatever_they_look_like():
    declared = {"day": pa.array(ISO), "number": pa.array([str(row % 9) for row in range(ROWS)])}
    written = first_config(write({name: values.dictionary_encode() for name, values in declared.items()}, "parquet"))
    assert not {"drop", "ids"} & set(written)


def write_codes(codes):
    rows = zip(codes, Y, strict=True)
    Path("t.csv").write_text("x,code,y\n" + "".join(f"{y / 2},{code},{y}\n" for code, y in rows))
    return "t.csv"


CODES = {
    "cards": (lambda row: 4111111111111111000000 + row, "ids"),
    "telephones": (lambda row: f"+4930{row:05d}", "ids"),
    "some missing": (lambda row: "" if row % 9 == 0 else f"+4930{row:05d}", "ids"),
    "areas": (lambda row: f"+4930{row % 5}", "dtypes"),
    "customers": (lambda row: 4111111111111111000000 + row % 9, "dtypes"),
}
NUMBERS = {
    "ZIP codes": (lambda row: f"{row % 60:05d}", "to keep leading zeros: categorical: [code]"),
    "hexadecimal": (lambda row: hex(row % 60), "to keep it as written: dtypes: {code: category}"),
    "exponents": (lambda row: f"{1 + row % 60}E3", "to keep it as written: dtypes: {code: category}"),
    "signs": (lambda row: f"{row % 50000 + 7:+}", "to keep it as written: dtypes: {code: category}"),
    "large": (lambda row: f"{row % 60}.5" if row % 7 else 10**18, ""),
}


@pytest.mark.parametrize("name", CODES)
def test_codes_that_would_lose_digits_or_signs_are_texts(name):
    made, key = CODES[name]
    written = first_config(write_codes([made(row) for row in range(ROWS)]))
    assert written[key] == {"ids": ["code"], "dtypes": {"code": "category"}}[key]
    assert "drop" not in written
    trained = rtrain.fit("t.yaml", ["trainer.num_boost_round=2"])
    names = trained.manifest.dataset["feature_names"]
    assert names == (["x", "code"] if key == "dtypes" else ["x"])


@pytest.mark.parametrize("name", NUMBERS)
def test_codes_that_keep_their_digits_stay_numbers_with_a_note(name):
    made, note = NUMBERS[name]
    written = first_config(write_codes([made(row) for row in range(ROWS)]))
    assert not {"drop", "ids", "dtypes"} & set(written)
    assert note in Path("t.yaml").read_text()


@pytest.mark.parametrize("name", ["zip\ncode", "a, b", "x: y", "plain", "{z}", "é", "yes", "null"])
def test_what_keeps_codes_as_they_are_written_can_be_followed(name, capsys):
    rows = [f"{row % 50:05d},{y}" for row, y in enumerate(Y)]
    Path("rows.csv").write_text("\n".join([f'"{name}",y', *rows]))
    assert run(["init", "--dataset", "rows.csv", "--label", "y"]) == 0
    assert yaml.safe_load(Path("rows.yaml").read_text())["dataset"]["label"] == "y"
    (note,) = [line for line in Path("rows.yaml").read_text().splitlines() if "to keep leading zeros: " in line]
    assert yaml.safe_load(note.partition("zeros: ")[2].rstrip(")")) == {"categorical": [name]}
