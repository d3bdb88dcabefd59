"""Marks of missing values: ``dataset.na_values`` and ``keep_default_na``, and the note on texts that may be some."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rtrain
from rtrain.cli.app import run
from rtrain.errors import DatasetError

ROWS = 60
MEMORY = pytest.mark.parametrize("memory", ["resident", "stream"])
MARKS = ["?", "-", "None", "<NA>", "missing"]
USUAL = ["NA", "null", "#N/A", "n/a"]


def write(folder, columns, ending):
    path = folder / f"x.{ending}"
    table = pa.table({**columns, "y": [row % 2 for row in range(ROWS)]})
    if ending == "csv":
        csv.write_csv(table, path)
    elif ending == "parquet":
        parquet.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return str(path)


def texts(mark, others):
    return [mark if row % 5 == 0 else others[row % len(others)] for row in range(ROWS)]


def num_missing(dataset):
    (columns,) = dataset.splits["train"].own_rows(0, 1)
    return (columns["x"] != columns["x"]).sum(axis=0).tolist()


@MEMORY
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_missing_in_numbers_and_in_texts(load, open_rows, tmp_path, memory, ending, seed):
    draw = random.Random(seed)
    mark, number = draw.choice(MARKS), draw.choice([-999, 9999, -1.5])
    kind = int if isinstance(number, int) and seed % 2 else float
    numbers = [kind(number) if row % 6 == 0 else kind(row) for row in range(ROWS)]
    columns = {"size": numbers, "place": texts(mark, ["a", "b"]), "kept": [float(row) for row in range(ROWS)]}
    if ending == "csv":
        columns["age"] = texts(mark, ["1", "2.5", "3"])
    keys = {"path": write(tmp_path, columns, ending), "label": "y", "na_values": [mark, number], "memory": memory}
    keys |= {"on_missing": "keep", "split": {"test": 0}}
    source = {"jsonl": "json"}.get(ending, ending)
    dataset = load(source, **keys)
    wanted = {"size": 10, "place": 12, "age": 12} if ending == "csv" else {"size": 10, "place": 12}
    assert num_missing(dataset) == [wanted.get(name, 0) for name in columns]
    assert dataset.info.num_missing == wanted
    assert dataset.info.categories == {"place": ("a", "b")}
    new = open_rows(source, dataset, **keys)
    assert (new.x != new.x).sum(axis=0).tolist() == num_missing(dataset)


@MEMORY
@pytest.mark.parametrize("dtype", ["float64", "int32", "category"])
def test_they_are_missing_before_a_column_is_cast(load, tmp_path, memory, dtype):
    path = write(tmp_path, {"size": texts("?", ["1", "2", "3"])}, "csv")
    keys = {"memory": memory, "dtypes": {"size": dtype}, "split": {"test": 0}, "on_missing": "keep"}
    dataset = load("csv", path=path, label="y", na_values=["?"], **keys)
    assert num_missing(dataset) == [12]


@MEMORY
@pytest.mark.parametrize("mark", USUAL)
def test_the_usual_marks_can_be_texts(load, tmp_path, memory, mark):
    path = write(tmp_path, {"code": texts(mark, ["1", "2"])}, "csv")
    keys = {"path": path, "label": "y", "memory": memory, "split": {"test": 0}, "on_missing": "keep"}
    assert num_missing(load("csv", **keys)) == [12]
    with pytest.raises(DatasetError, match=mark):
        load("csv", **{**keys, "on_missing": "error"}, keep_default_na=False, categorical=[])
    for more in ({}, {"categorical": ["code"]}):
        dataset = load("csv", **keys, keep_default_na=False, **more)
        assert set(dataset.info.categories["code"]) == {"1", "2", mark}
        assert num_missing(dataset) == [0]
    assert num_missing(load("csv", **keys, keep_default_na=False, na_values=[mark])) == [12]


@MEMORY
@pytest.mark.parametrize("mark", [*MARKS, *USUAL])
def test_a_text_that_may_be_a_mark_is_noted_until_the_config_says_what_it_is(load, tmp_path, memory, mark, caplog):
    keys = {"path": write(tmp_path, {"place": texts(mark, ["a", "b"])}, "csv"), "label": "y", "memory": memory}
    load("csv", **keys)
    assert "dataset.na_values" in caplog.text
    assert mark in caplog.text
    caplog.clear()
    for more in ({"na_values": [mark]}, {"categorical": ["place"]}, {"keep_default_na": False}):
        load("csv", **keys, on_missing="keep", **more)
        assert "na_values" not in caplog.text


@MEMORY
@pytest.mark.parametrize("mark", ["?", "-", "None"])
@pytest.mark.parametrize("late", [False, True])
def test_a_mark_among_numbers_is_an_error_with_the_key(load, tmp_path, memory, mark, late):
    others = 300_000 if late else 0
    path, marked = tmp_path / "x.csv", texts(mark, "123456789")
    path.write_text(
        "a,y\n" + "1,0\n2,1\n" * (others // 2) + "".join(f"{one},{row % 2}\n" for row, one in enumerate(marked))
    )
    with pytest.raises(DatasetError) as raised:
        load("csv", path=str(path), label="y", memory=memory)
    assert f'dataset.na_values=["{mark}"]' in raised.value.hint
    assert load("csv", path=str(path), label="y", memory=memory, na_values=[mark], on_missing="keep").info.missing


def test_check_counts_and_a_prediction_takes_them_as_missing_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    columns = {"size": texts("?", ["1", "2", "3"]), "place": texts("-", ["a", "b"])}
    words = [f"dataset.path={write(tmp_path, columns, 'csv')}", "dataset.label=y", 'dataset.na_values=["?","-"]']
    assert run(["check", "xgboost", "dataset=csv", *words]) == 0
    assert re.findall(r"(\d+) of (\w+)", capsys.readouterr().out) == [("12", "size"), ("12", "place")]
    trained = rtrain.fit("xgboost", ["dataset=csv", *words, "num_workers=0", "trainer.num_boost_round=3"])
    empty = {"size": [None if one == "?" else float(one) for one in columns["size"]]}
    empty["place"] = [None if one == "-" else one for one in columns["place"]]
    marked = {"size": [-999.0 if one is None else one for one in empty["size"]], "place": columns["place"]}
    for name, content in {"empty": empty, "marked": marked}.items():
        Path(name).mkdir()
        parquet.write_table(pa.table(content), f"{name}/x.parquet")
    found = []
    for words in (["x.csv"], ["empty/x.parquet"], ["marked/x.parquet", 'dataset.na_values=["?","-",-999]']):
        rtrain.predict(trained.path, "out.parquet", words, force=True)
        found.append(parquet.read_table("out.parquet")["prediction"].to_pylist())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("mark", ["?", "-", "None"])
def test_init_writes_the_marks_that_it_is_sure_of(tmp_path, monkeypatch, mark):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"size": texts(mark, ["1", "2", "3"]), "alley": texts("NA", ["Grvl", "Pave"])}, "csv")
    assert run(["init", "--dataset", "x.csv", "--label", "y"]) == 0
    text = Path("x.yaml").read_text()
    assert f'na_values: ["{mark}"]' in text or f"na_values: [{mark}]" in text
    assert "12 missing" in text
    assert 'na_values: ["NA"]' in text.partition("defaults:")[0]
    assert run(["check", "x.yaml"]) == 0


@MEMORY
@pytest.mark.parametrize("split", ["train", "all"])
def test_the_model_of_a_column_without_values_can_be_used(memory, split, tmp_path, monkeypatch, caplog, capsys):
    monkeypatch.chdir(tmp_path)
    values = [1.5 if split == "train" and row >= 48 else None for row in range(ROWS)]
    path = write(tmp_path, {"a": [row / 7 for row in range(ROWS)], "b": values}, "csv")
    words = ["dataset=csv", f"dataset.path={path}", "dataset.label=y", f"dataset.memory={memory}", "num_workers=0"]
    words += ["trainer.num_boost_round=3", "run.name=r"]
    if split == "train":
        Path(path).rename("train.csv")
        Path("test.csv").write_text("a,b,y\n1,1.5,0\n2,2.5,1\n")
        Path("train.csv").write_text("a,b,y\n" + "".join(f"{row / 7},,{row % 2}\n" for row in range(ROWS)))
        words[1] = "dataset.path={train: train.csv, test: test.csv}"
    assert run(["fit", "xgboost", *words]) == 0
    assert "dataset.drop=[b]" in caplog.text
    assert run(["evaluate", "last:r"]) == 0, capsys.readouterr().err
