"""Codes that look like numbers stay what they are where they name the rows of predictions, and only those."""

from __future__ import annotations

import numpy as np
import pytest
from pyarrow import csv, parquet

import rtrain
from rtrain.datasets.tables.formats.csv import CsvFormat
from rtrain.datasets.tables.formats.csv_codes import code_columns

CODES = {
    "zeros": ["00123", "00007", "10200"],
    "mixed": ["123", "7", "007"],
    "quoted": ['"01"', '"02"', '"10"'],
    "telephone": ["+49301234", "+49305678", "+4930"],
    "serial": ["12E3", "77E1", "1"],
    "hexadecimal": ["0x1F", "0X2a", "7"],
    "long": ["12345678901234567890", "12345678901234567891", "5"],
    "missing": ["", "007", "NA"],
    "blanks": [" 007", " 8", " 9"],
    "a mark": ["007", "-", "8"],
}
NUMBERS = {
    "whole": ["0", "7", "-12"],
    "fractions": ["0.5", "-0.25", "00.5"],
    "exponents": ["1e-05", "1.5e+20", "2"],
    "an exponent among fractions": ["0.5", "1e5", "2.5"],
    "a plus among fractions": ["+5", "2.5", "1"],
    "a plus among numbers below 0": ["+5", "-3", "1"],
    "zeros among fractions": ["00", "0.5", "1"],
    "long fractions": ["12345678901234567890", "0.5", "1"],
    "large": ["9007199254740993", "1", "2"],
    "missing": ["", "0", "NA"],
    "texts": ["a1", "b2", "007"],
    "empty": ["", "", ""],
}


def written(path, columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(",".join(row) + "\n" for row in (columns, *rows)))
    return path


def columns_of(reading, file, names):
    return code_columns(reading, file, reading.schema(file), names)


@pytest.mark.parametrize("name", CODES)
def test_codes_are_recognized(tmp_path, name):
    file = written(tmp_path / "a.csv", {"number": ["1", "2", "3"], "code": CODES[name]})
    assert columns_of(CsvFormat(",", na_values=["-"]), file, ["number", "code"]) == ["code"]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_no_codes(tmp_path, name):
    file = written(tmp_path / "a.csv", {"code": ["01", "2", "3"], "number": NUMBERS[name]})
    assert columns_of(CsvFormat(","), file, ["number", "code"]) == ["code"]


def test_a_file_without_rows_has_no_codes(tmp_path):
    file = written(tmp_path / "a.csv", {"code": []})
    assert columns_of(CsvFormat(","), file, ["code"]) == []


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The run directory of a model that was trained on a CSV file with codes among its features."""
    folder = tmp_path_factory.mktemp("codes")
    zips = [f"{number:05d}" for number in range(100)]
    written(folder / "rows.csv", {"zip": zips, "y": [str(int(one) // 50) for one in zips]})
    words = ["dataset=csv", f"dataset.path={folder}/rows.csv", "dataset.label=y", "trainer.num_boost_round=2"]
    return rtrain.fit("lightgbm", [*words, "num_workers=0", f"run.root_dir={folder}/runs"]).path


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ids", [["codes"], []])
def test_predictions_have_the_codes_of_their_rows(trained, tmp_path, ids, workers):
    codes = [f"{number:03d}" for number in range(0, 300, 3)]
    columns = {"codes": codes, "zip": [str(number) for number in range(100)], "n": ["7"] * 100}
    plain = {"codes": ["5"] * 100, "n": ["8"] * 100}
    written(tmp_path / "1.csv", columns | plain)
    written(tmp_path / "2.csv", columns)
    words = [f"dataset.path={tmp_path}/*.csv", f"dataset.ids=[{','.join(ids)}]", f"num_workers={workers}"]
    found = rtrain.predict(trained, overrides=words)
    assert found["codes"].to_pylist() == [*plain["codes"], *codes]
    assert ids or found["n"].to_pylist() == [8] * 100 + [7] * 100
    rtrain.predict(trained, str(tmp_path / "out.parquet"), words)
    assert parquet.read_table(tmp_path / "out.parquet")["codes"].to_pylist()[-1] == "297"
    by_type = rtrain.predict(trained, overrides=[*words, "dataset.dtypes={codes: int64}"])
    assert by_type["codes"].to_pylist()[-1] == 297


def test_features_that_look_like_codes_stay_numbers(trained, tmp_path):
    written(tmp_path / "a.csv", {"zip": [f"{number:05d}" for number in range(100)], "y": ["0"] * 50 + ["1"] * 50})
    csv.write_csv(csv.read_csv(tmp_path / "a.csv"), tmp_path / "b.csv")
    with_zeros, without = (
        rtrain.predict(trained, overrides=[f"dataset.path={tmp_path / one}"]) for one in ("a.csv", "b.csv")
    )
    assert with_zeros.equals(without)
    assert len(np.unique(with_zeros["prediction"])) == 2
    assert rtrain.evaluate(trained, [f"dataset.path={tmp_path}/a.csv"])["accuracy"] > 0.9
