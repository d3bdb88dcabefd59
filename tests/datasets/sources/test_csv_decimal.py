"""Commas before the fractions of numbers in CSV files: ``dataset.decimal``, and what is said without it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import csv

from rtrain.cli.app import run
from rtrain.datasets.tables.categories import have_decimal_commas
from rtrain.errors import DatasetError


def table(seed: int, decimal: str, sign: str, *, named: bool = True) -> str:
    """Return the text of a table: numbers with fractions, some missing and some negative, a category, a label."""
    draw = random.Random(seed)
    quote = draw.choice(["", '"'])
    rows = []
    for row in range(60):
        size = draw.choice(["", f"{draw.uniform(-90, 900):.2f}", f"{draw.uniform(-9, 9):.3e}"]) if row else "1.50"
        values = [size.replace(".", decimal), f"{row}", "abc"[row % 3], f"{row / 7:.3f}".replace(".", decimal)]
        rows.append(sign.join(f"{quote}{value}{quote}" for value in values))
    return "\n".join([sign.join(["size", "count", "kind", "price"]), *rows][not named :]) + "\n"


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("seed", range(4))
def test_commas_before_fractions(load, open_rows, tmp_path, seed, memory):
    names, found = ["size", "count", "kind", "price"], []
    for decimal in ",.":
        path = tmp_path / f"{ord(decimal)}.csv"
        path.write_text(table(seed, decimal, "\t;"[seed % 2], named=seed != 3))
        keys = {"path": str(path), "label": "price", "delimiter": "\t;"[seed % 2], "decimal": decimal}
        keys |= {"names": names} if seed == 3 else {}
        dataset = load("csv", **keys, memory=memory, split={"test": 0.2}, on_missing="keep", normalize=False)
        assert dataset.info.categories == {"kind": ("a", "b", "c")}
        assert dataset.info.num_missing["size"] > 5
        found.append((dataset.info.num_rows, open_rows("csv", dataset, **keys).x))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_a_text_that_would_be_a_number_leads_to_the_key(load, tmp_path, caplog):
    (tmp_path / "x.csv").write_text(table(0, ",", ";"))
    keys = {"path": str(tmp_path / "x.csv"), "delimiter": ";"}
    with pytest.raises(DatasetError) as raised:
        load("csv", **keys, label="price")
    assert "dataset.decimal=comma" in raised.value.hint
    load("csv", **keys, label="kind")
    told = [record.getMessage() for record in caplog.records]
    assert [sum(f"'{name}'" in text and "dataset.decimal=comma" in text for text in told) for name in ("size", "price")]
    assert len(told) == len({text.split("'")[1] for text in told}), "one note for each column"


@pytest.mark.parametrize("values", ["{}", "{}%", "{},5"])
def test_what_the_config_takes_as_a_category_is_not_told_to_be_a_number(load, tmp_path, caplog, values):
    csv.write_csv(
        pa.table({"n": [values.format(row) for row in range(9)] * 9, "y": [0, 1, 1] * 27}), tmp_path / "x.csv"
    )
    dataset = load("csv", path=str(tmp_path / "x.csv"), label="y", dtypes={"n": "category"})
    assert (len(dataset.info.categories["n"]), caplog.text) == (9, "")


@pytest.mark.parametrize("texts", [["1,000", "12,500"], ["1,234,567"], ["1.234,5"], ["1,5", "x"], ["3", "4"]])
def test_other_commas_are_not_taken_for_fractions(texts):
    assert not have_decimal_commas(texts)


@pytest.mark.parametrize("named", [True, False])
def test_init_finds_the_comma(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text(table(1, ",", ";", named=named))
    assert run(["init", "--dataset", "x.csv", "--label", "price" if named else "c3"]) == 0
    written = yaml.safe_load(Path("x.yaml").read_text())["dataset"]
    assert (written["delimiter"], written["decimal"], "names" in written) == ("semicolon", ",", not named)
    assert run(["check", "x.yaml"]) == 0


def test_a_comma_means_one_thing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("a,y\n1,2\n")
    assert (
        run(["check", "xgboost", "dataset=csv", "dataset.path=x.csv", "dataset.label=y", "dataset.decimal=comma"]) == 2
    )
    assert "decimal and delimiter are both ','" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "told"), [(-999, True), (9999, True), (-998, False), (99, False)])
def test_init_tells_of_numbers_that_may_stand_for_nothing(tmp_path, monkeypatch, value, told):
    monkeypatch.chdir(tmp_path)
    rows = [f"{row if row % 9 else value},{row % 2}" for row in range(150)]
    Path("x.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    assert run(["init", "--dataset", "x.csv", "--label", "y"]) == 0
    assert (f"na_values: [{value}]" in Path("x.yaml").read_text()) == told
