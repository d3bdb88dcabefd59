"""Blanks around the values of CSV files: ``dataset.skipinitialspace``, and the note without it."""

from __future__ import annotations

import csv
import gzip
import io
import random
from pathlib import Path

import pytest
import yaml

from rtrain.cli.app import run
from rtrain.datasets.tables.formats.csv_blanks import SkippedBlanks
from rtrain.errors import DatasetError

MEMORY = pytest.mark.parametrize("memory", ["resident", "stream"])


@pytest.mark.parametrize("seed", range(40))
def test_text_has_the_values_that_the_standard_library_reads(seed):
    draw = random.Random(seed)
    sign, end = draw.choice(",;\t|"), draw.choice(["\n", "\r\n"])
    values = ["a", "1.5", "", "a b", "ü", f'"x{sign} y"', '"say ""so"""', '" "', 'half "quoted"']
    cell = draw.choice(["  a", lambda: " " * draw.randint(0, 2) + draw.choice(values) + " " * draw.randint(0, 1)])
    text = end.join(sign.join(cell() if callable(cell) else cell for _ in range(3)) for _ in range(draw.randint(1, 9)))
    stream = SkippedBlanks(io.BytesIO(text.encode()), sign)
    found = b"".join(iter(lambda: stream.read(draw.randint(1, 9)), b"")).decode()
    wanted = list(csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True))
    assert list(csv.reader(io.StringIO(found, newline=""), delimiter=sign)) == wanted


def table(draw, before, after, *, named=True):
    quote = draw.choice(["", '"'])
    rows = [
        [str(row), f"{quote}{'abc'[row % 3]}{quote}", f"{quote}{'no' if row % 2 else 'yes'}{quote}"]
        for row in range(40)
    ]
    rows = [["a", "b", "y"], *rows] if named else rows
    return "".join(",".join(f"{before}{value}{after}" for value in row) + "\n" for row in rows)


@MEMORY
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("before", "after"), [(" ", ""), ("", " "), ("  ", " ")])
def test_blanks_around_values_and_names_are_left_out(load, open_rows, tmp_path, memory, packed, before, after):
    for seed, named in ((0, True), (1, True), (2, False), (3, False)):
        text = table(random.Random(seed), before, after, named=named).encode()
        path = tmp_path / ("x.csv.gz" if packed else "x.csv")
        path.write_bytes(gzip.compress(text) if packed else text)
        keys = {"path": str(path), "label": "y", "memory": memory, "split": {"test": 0}, "skipinitialspace": True}
        keys |= {} if named else {"names": ["a", "b", "y"]}
        dataset = load("csv", **keys)
        assert dataset.info.feature_names == ("a", "b")
        assert dataset.info.categories == {"b": ("a", "b", "c")}
        assert dataset.info.class_names == ("no", "yes")
        assert dataset.info.num_rows == {"train": 40}
        plain = tmp_path / "plain.csv"
        plain.write_text(table(random.Random(seed), "", ""))
        assert open_rows("csv", dataset, **{**keys, "path": str(plain)}).x.tolist() == (
            open_rows("csv", dataset, **keys).x.tolist()
        )


@MEMORY
def test_values_of_blanks_alone_are_missing(load, tmp_path, memory):
    (tmp_path / "x.csv").write_text(
        "a,b,y\n" + "".join(f"{'  ' if row % 4 else row}, ,{row % 2}\n" for row in range(40))
    )
    keys = {"path": str(tmp_path / "x.csv"), "label": "y", "on_missing": "keep", "split": {"test": 0}}
    assert load("csv", **keys, memory=memory, skipinitialspace=True).info.num_missing == {"a": 30, "b": 40}


@MEMORY
@pytest.mark.parametrize("place", ["feature", "label"])
def test_blanks_are_noted_where_they_are_kept(load, tmp_path, memory, place, caplog):
    line = {"feature": " {0},{0}\n", "label": "{0},{0} \n"}[place]
    (tmp_path / "x.csv").write_text("b,y\n" + "".join(line.format("ab"[row % 2]) for row in range(40)))
    load("csv", path=str(tmp_path / "x.csv"), label="y", memory=memory)
    assert place in caplog.text
    assert "skipinitialspace" in caplog.text
    caplog.clear()
    load("csv", path=str(tmp_path / "x.csv"), label="y", memory=memory, skipinitialspace=True)
    assert "skipinitialspace" not in caplog.text


@pytest.mark.parametrize("seen", [" ", ""])
def test_new_texts_are_those_of_training_whatever_blanks_they_have(load, open_rows, tmp_path, seen):
    for name, blank in (("seen", seen), ("new", " " if not seen else "")):
        lines = [f"{blank}{'abc'[row % 3]},{row % 2}\n" for row in range(30)]
        (tmp_path / f"{name}.csv").write_text("b,y\n" + "".join(lines))
    dataset = load("csv", path=str(tmp_path / "seen.csv"), label="y", split={"test": 0})
    found = [open_rows("csv", dataset, path=str(tmp_path / f"{name}.csv"), label="y").x for name in ("seen", "new")]
    assert found[0].tolist() == found[1].tolist()


def test_a_blank_before_the_name_of_the_label_is_an_error_with_the_key(load, tmp_path):
    (tmp_path / "x.csv").write_text(table(random.Random(0), " ", ""))
    with pytest.raises(DatasetError) as raised:
        load("csv", path=str(tmp_path / "x.csv"), label="y")
    assert "dataset.skipinitialspace=true" in raised.value.hint


@pytest.mark.parametrize("named", [False, True])
def test_init_leaves_blanks_out(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    Path("x.data").write_text(table(random.Random(0), " ", "", named=named) + " 7, ?, yes\n")
    assert run(["init", "--dataset", "x.data", "--label", "y" if named else "c2"]) == 0
    written = yaml.safe_load(Path("x.yaml").read_text())["dataset"]
    assert written["skipinitialspace"] is True
    assert written["na_values"] == ["?"]
    assert run(["check", "x.yaml"]) == 0
