"""CSV files without a header line: ``dataset.names``, and what is said where the first line is data."""

from __future__ import annotations

import gzip
import random

import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import TypeAdapter, ValidationError

import rtrain
from rtrain.datasets.registry import confs
from rtrain.datasets.tables.formats.csv import delimiter_of
from rtrain.errors import DatasetError

KINDS = {"whole": lambda row: row * 7, "fraction": lambda row: row / 8 - 3, "text": lambda row: "abc"[row % 3]}
MEMORY = pytest.mark.parametrize("memory", ["resident", "stream"])


def table(seed, num_rows=40):
    """Return the names and lines of a table with columns of some kinds, and the label y somewhere among them."""
    draw = random.Random(seed)
    kinds = draw.choices(list(KINDS), k=draw.randint(1, 6))
    columns = [(f"{kind} {place}", [KINDS[kind](row) for row in range(num_rows)]) for place, kind in enumerate(kinds)]
    columns.insert(draw.randint(0, len(columns)), ("y", [row % 2 for row in range(num_rows)]))
    return [name for name, _ in columns], [list(map(str, row)) for row in zip(*(v for _, v in columns), strict=True)]


def write(path, lines, sign=",", end="\n"):
    text = "".join(sign.join(line) + end for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def rows_of(dataset):
    (columns,) = dataset.splits["train"].own_rows(0, 1)
    return columns["x"].tolist(), columns["y"].tolist()


@MEMORY
@pytest.mark.parametrize("seed", range(8))
def test_named_columns_are_those_of_a_header(load, tmp_path, memory, seed):
    names, lines = table(seed)
    sign, end, name = (",;\t"[seed % 3], ("\n", "\r\n")[seed % 2], ("x.csv", "x.csv.gz")[seed % 2])
    keys = {"label": "y", "memory": memory, "delimiter": sign, "split": {"test": 0}}
    headed = load("csv", path=write(tmp_path / f"headed-{name}", [names, *lines], sign, end), **keys)
    bare = write(tmp_path / name, lines, sign, end)
    unheaded = load("csv", path=bare, names=names, **keys)
    assert unheaded.info.feature_names == headed.info.feature_names
    assert unheaded.info.num_rows == {"train": len(lines)}
    assert rows_of(unheaded) == rows_of(headed)


@MEMORY
@pytest.mark.parametrize("order", ["same", "turned", "some", "blanks", "more"])
def test_a_file_whose_first_line_has_the_names_is_read_by_it(load, open_rows, tmp_path, memory, order):
    lines = [[str(row), str(row * 3), str(row % 2)] for row in range(30)]
    keys = {"label": "y", "names": ["a", "b", "y"], "memory": memory, "split": {"test": 0}}
    dataset = load("csv", path=write(tmp_path / "x.csv", lines), **keys)
    places = {"turned": [2, 1, 0], "some": [1, 0]}.get(order, [0, 1, 2])
    header = [("a", "b", "y")[place] for place in places]
    header = [f" {name} " for name in header] if order == "blanks" else header
    header, more = ([*header, "c"], ["x"]) if order == "more" else (header, [])
    new = write(tmp_path / "new.csv", [header, *([*(line[place] for place in places), *more] for line in lines)])
    assert open_rows("csv", dataset, path=new, **keys).x.tolist() == rows_of(dataset)[0]
    again = write(tmp_path / "again.csv", lines)
    assert open_rows("csv", dataset, path=again, **keys).x.tolist() == rows_of(dataset)[0]


@MEMORY
@pytest.mark.parametrize("names", [["a", "y"], ["a", "b", "c", "y"]])
def test_too_many_or_too_few_names_are_an_error_that_has_both_numbers(load, tmp_path, memory, names):
    path = write(tmp_path / "x.csv", [["1", "2", "0"], ["3", "4", "1"]])
    with pytest.raises(DatasetError, match=rf"x\.csv: .*3 values.*dataset\.names has {len(names)}"):
        load("csv", path=path, label="y", names=names, memory=memory)


@pytest.mark.parametrize("names", [[], ["a", "a", "y"]])
def test_names_have_to_be_some_and_different(names):
    with pytest.raises(ValidationError, match="names"):
        TypeAdapter(confs()["csv"]).validate_python({"path": "x.csv", "label": "y", "names": names})


@MEMORY
@pytest.mark.parametrize("seed", range(6))
def test_a_first_line_of_data_is_told_of_with_names_that_work(load, tmp_path, memory, seed):
    names, lines = table(seed)
    path = write(tmp_path / "x.csv", lines)
    with pytest.raises(DatasetError) as raised:
        load("csv", path=path, label="income", memory=memory)
    proposed = raised.value.hint.partition("dataset.names=[")[2].partition("]")[0].split(",")
    label = proposed[names.index("y")]
    assert load("csv", path=path, label=label, names=proposed, memory=memory).info.num_classes == 2


@pytest.mark.parametrize("header", [["2019", "2020", "total"], ["a", "b", "y"], ["0", "1", "2"]])
def test_a_header_is_none_of_data_where_the_label_is_in_it(load, tmp_path, header):
    path = write(tmp_path / "x.csv", [header, *([str(row), str(row / 2), str(row % 2)] for row in range(20))])
    assert load("csv", path=path, label=header[-1], split={"test": 0}).info.num_rows == {"train": 20}


def test_new_rows_without_a_header_are_an_error_that_names_the_key(load, open_rows, tmp_path):
    lines = [[str(row), str(row * 3), str(row % 2)] for row in range(30)]
    dataset = load("csv", path=write(tmp_path / "x.csv", [["a", "b", "y"], *lines]), label="y")
    bare = write(tmp_path / "new.csv", lines)
    with pytest.raises(DatasetError) as raised:
        open_rows("csv", dataset, path=bare, label="y")
    assert "dataset.names" in raised.value.hint
    assert len(open_rows("csv", dataset, path=bare, label="y", names=["a", "b", "y"]).x) == 30


@MEMORY
def test_a_run_reads_new_files_as_its_own(tmp_path, monkeypatch, memory):
    monkeypatch.chdir(tmp_path)
    lines = [[str(row), "abc"[row % 3], str(row % 2)] for row in range(60)]
    path = write(tmp_path / "rows.data", lines)
    words = [f"dataset.path={path}", "dataset.label=y", "dataset.names=[a,b,y]", f"dataset.memory={memory}"]
    run = rtrain.fit("xgboost", ["dataset=csv", *words, "num_workers=0", "trainer.num_boost_round=3"])
    write(tmp_path / "headed.csv", [["b", "a"], *([b, a] for a, b, _ in lines)])
    table = pa.table({"b": [line[1] for line in lines], "a": [int(line[0]) for line in lines]})
    parquet.write_table(table, "new.parquet")
    found = {}
    for name in ("rows.data", "headed.csv", "new.parquet"):
        for words in ([name], [f"dataset={'parquet' if 'parquet' in name else 'csv'}", f"dataset.path={name}"]):
            rtrain.predict(run.path, "out.parquet", words, force=True)
            found[(name, *words)] = parquet.read_table("out.parquet")["prediction"].to_pylist()
    assert len({tuple(one) for one in found.values()}) == 1
    assert rtrain.evaluate(run.path, ["dataset.path=rows.data"])


@pytest.mark.parametrize(("sign", "name"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "pipe")])
def test_the_delimiter_is_the_sign_that_the_first_line_has_most_of(load, tmp_path, sign, name):
    path = write(tmp_path / "x.csv", [["a", "b", "y"], ["7,5", "1,5", "0"]] if sign != "," else [["a", "y"]], sign)
    assert delimiter_of(tmp_path / "x.csv") == sign
    other = ";" if sign == "," else ","
    with pytest.raises(DatasetError) as raised:
        load("csv", path=path, label="y", delimiter=other)
    assert f"dataset.delimiter={name}" in str(raised.value)


def test_a_file_of_one_column_has_commas(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n2\n")
    assert delimiter_of(tmp_path / "x.csv") == ","
