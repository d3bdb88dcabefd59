"""Which rows a command names, and where results go: nothing is read but part of it, nothing is replaced by mistake."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError

ROWS = pa.table({"a": [0.1, 0.2, 0.3], "b": [-3.0, 3.0, 2.0], "kind": ["red", "blue", "red"]})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The run directory of a model of two numbers and two classes."""
    folder = tmp_path_factory.mktemp("trained")
    x = np.random.default_rng(0).normal(size=(300, 2))
    kind = np.where(x.sum(axis=1) > 0, "red", "blue")
    csv.write_csv(pa.table({"a": x[:, 0], "b": x[:, 1], "kind": kind}), folder / "rows.csv")
    words = [f"dataset.path={folder}/rows.csv", "dataset=csv", "dataset.label=kind", "trainer.num_boost_round=2"]
    return str(rtrain.fit("lightgbm", [*words, "num_workers=0", f"run.root_dir={folder}/runs"]).path)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("q1.csv", "q2.csv", "more/q3.csv", "parts/1.csv", "parts/2.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        csv.write_csv(ROWS, name)
    Path("in").mkdir()
    parquet.write_table(ROWS, "in/part-00000.parquet")


VERBS = {"predict": ["-o", "out.csv"], "evaluate": []}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["parts/1.csv", "parts/2.csv"], "'parts/*.csv'"),
        (["q1.csv", "more/q3.csv"], "a pattern in quotes"),
        (["q1.csv", "dataset.path=q2.csv"], "q1.csv, dataset.path=q2.csv"),
        (["dataset.path=q1.csv", "parts"], "dataset.path=q1.csv, parts"),
        (["in", "q1.csv"], "in, q1.csv"),
    ],
    ids=str,
)
def test_all_places_that_are_named_are_read_or_refused(trained, files, capsys, verb, words, meant):
    assert command([verb, trained, *words, *VERBS[verb]]) == 2
    told = capsys.readouterr().err
    assert "several places are named for the rows" in told
    assert meant in told
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "name",
    ["d ä,=.csv", "day=1.csv", "day=1/", "more/x.y=3.csv", "./dataset.limit=1.csv", "#a.csv", "[b].csv", "-.csv"],
)
def test_a_file_or_folder_that_is_there_is_data_whatever_it_is_called(trained, files, capsys, verb, name):
    place = Path(name)
    place.parent.mkdir(exist_ok=True)
    if name.endswith("/"):
        place.mkdir()
    csv.write_csv(ROWS, place / "1.csv" if name.endswith("/") else place)
    shown = {"evaluate": f"num_rows    {len(ROWS)}", "predict": f"predicted {len(ROWS)} rows"}
    assert command([verb, trained, *VERBS[verb], "--", name]) == 0, capsys.readouterr().err
    assert shown[verb] in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_a_key_stays_one_where_a_file_is_called_like_it(trained, files, capsys, verb):
    Path("scaling.num_workers=0").touch()
    assert command([verb, trained, *VERBS[verb], "q1.csv", "scaling.num_workers=0"]) == 0, capsys.readouterr().err


def test_the_pattern_that_is_proposed_reads_them_all(trained, files):
    with pytest.raises(ConfigError) as refused:
        rtrain.predict(trained, "out.csv", ["parts/1.csv", "parts/2.csv"])
    pattern = refused.value.hint.split("'")[1]
    assert rtrain.predict(trained, "out.csv", [pattern]) == 2 * len(ROWS)


@pytest.mark.parametrize(
    ("rows", "output"),
    [
        ("q1.csv", "q1.csv"),
        ("q1.csv", "./q1.csv"),
        ("q1.csv", "parts/../q1.csv"),
        ("q1.csv", "link.csv"),
        ("*.csv", "q1.csv"),
        ("parts", "parts/1.csv"),
        ("in", "in/"),
        ("in/part-00000.parquet", "in/"),
        ("in/*.parquet", "in"),
    ],
)
def test_an_output_never_replaces_what_is_read(trained, files, rows, output):
    Path("link.csv").symlink_to("q1.csv")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match="the rows are read from it"):
        rtrain.predict(trained, output, [rows], force=True)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("rows", "output"), [("parts", "parts/new.parquet"), ("q1.csv", "q2.csv"), ("q1.csv", "in/")])
def test_an_output_beside_what_is_read_is_replaced(trained, files, rows, output):
    for _ in range(2):
        assert rtrain.predict(trained, output, [rows], force=True) >= len(ROWS)


@pytest.mark.parametrize("name", ["q1.csv", "parts/", "notes.txt", "list.json"])
def test_an_evaluation_replaces_nothing_but_an_evaluation(trained, files, capsys, name):
    Path("notes.txt").write_text("mine")
    Path("list.json").write_text("[1]")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert command(["evaluate", trained, "q1.csv", "-o", name]) == 2
    assert name in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    for rows in ("q1.csv", "parts"):
        assert command(["evaluate", trained, rows, "-o", "found.json"]) == 0
        assert json.loads(Path("found.json").read_text())["dataset"]["path"] == rows


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("output", ["/proc/out.csv", "/dev/null/out.csv", "locked/out.csv"])
def test_a_place_that_can_not_be_written_is_told(trained, files, capsys, verb, output, monkeypatch):
    Path("locked").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked" and access(path, mode))
    assert command([verb, trained, "q1.csv", "-o", output]) != 0
    told = capsys.readouterr().err
    assert f"error: {output}" in told
    assert "Traceback" not in told


def test_a_disk_that_is_full_is_told(trained, files, capsys):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    from rtrain.prediction import output

    class Full:
        def __init__(self, *_):
            pass

        def write_table(self, _):
            with Path("/dev/full").open("w") as file:
                file.write("x" * 100_000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "_open", Full)
        assert command(["predict", trained, "q1.csv", "-o", "out.csv"]) != 0
    told = capsys.readouterr().err
    assert "out.csv can't be written: No space left on device" in told
    assert "Traceback" not in told
    assert not list(Path().glob(".out*"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_is_no_source(trained, files, capsys, verb):
    assert command([verb, trained, "dataset=q1.csv", *VERBS[verb]]) == 2
    assert "Name the file alone: q1.csv" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("place", ["none.{}", "dataset.path=none.{}"])
def test_data_without_rows_is_named(trained, files, capsys, verb, ending, place):
    csv.write_csv(ROWS[:0], "none.csv")
    parquet.write_table(ROWS[:0], "none.parquet")
    source = ["dataset=parquet"] if ending == "parquet" and "=" in place else []
    assert command([verb, trained, *source, place.format(ending), *VERBS[verb]]) == 2
    assert f"none.{ending}: " in capsys.readouterr().err
    assert not list(Path().glob("*out*"))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("split", ["test", "val"])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    "words",
    [
        ["dataset.path.{}=q1.csv"],
        ["++dataset.path.{}=q1.csv"],
        ["dataset.path={{{}: q1.csv}}"],
        ["dataset=parquet", "dataset.path.{}=in"],
        ["dataset=sql", "dataset.url=sqlite:///q.db", "dataset.query.{}='select * from rows'"],
    ],
    ids=str,
)
def test_the_rows_of_a_split_need_no_rows_to_train_on(trained, files, capsys, verb, split, asked, words):
    with contextlib.closing(sqlite3.connect("q.db")) as connection, connection:
        connection.execute("create table rows (a real, b real, kind text)")
        connection.executemany("insert into rows values (?, ?, ?)", [tuple(row.values()) for row in ROWS.to_pylist()])
    named = [word.format(split) for word in words]
    option = ["--split", split] if asked else []
    shown = {"evaluate": f"num_rows    {len(ROWS)}", "predict": f"predicted {len(ROWS)} rows"}
    assert command([verb, trained, *named, *option, *VERBS[verb]]) == 0, capsys.readouterr().err
    assert shown[verb] in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dataset.path.test=q1.csv", "--split", "val"], "there is no split 'val'"),
        (["dataset.path.test=q1.csv", "dataset.path.val=q2.csv", "--split", "test"], "must name train"),
        (["++dataset.path.tests=q1.csv"], "must name train"),
        (["dataset.path.test=none.csv"], "none.csv does not exist"),
    ],
    ids=str,
)
def test_other_splits_than_those_that_are_named_are_refused(trained, files, capsys, verb, words, said):
    assert command([verb, trained, *words, *VERBS[verb]]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("word", ["dataset.path.test=q1.csv", "dataset.path={test: q1.csv}"])
def test_a_proposed_command_reads_the_rows_that_were_named(trained, files, capsys, verb, word):
    options = ["--split", "test", *VERBS[verb]]
    assert command([verb, trained, word, *options, "dataset.lable=kind"]) == 2
    told = capsys.readouterr().err
    assert "dataset.path=q1.csv" not in told
    (attempt,) = re.findall(r"try: rtrain (.*)", told)
    assert command(shlex.split(attempt)) == 0
    shown = {"evaluate": f"num_rows    {len(ROWS)}", "predict": f"predicted {len(ROWS)} rows"}
    assert shown[verb] in capsys.readouterr().out
    assert command([verb, trained, word, *options, "dataset.limit=10"]) == 2
    assert "--split test" not in capsys.readouterr().err


OPTIONS = {
    "predict": [["-o", "out dir/"], ["-o", "o.csv", "--split", "test", "--force"], ["--output=o.csv", "--trust"]],
    "evaluate": [["--split=val", "--json"], ["--checkpoint", "latest", "--trust"], ["-o", "o.json"]],
}


@pytest.mark.parametrize(("verb", "options"), [(verb, one) for verb in VERBS for one in OPTIONS[verb]], ids=str)
@pytest.mark.parametrize("word", ["dataset.pth=q1.csv", "scaling.num_worker=0", "dataset.na_valus=3"])
def test_a_proposed_command_has_the_options_of_the_one_that_was_typed(trained, files, capsys, verb, options, word):
    assert command([verb, trained, *options, word]) == 2
    (attempt,) = re.findall(r"try: (.*)", capsys.readouterr().err)
    first, second, place, *words = shlex.split(attempt)
    assert (first, second, Path(place).resolve()) == ("rtrain", verb, Path(trained).resolve())
    given = " ".join(options).replace("=", " ").replace("-o ", "--output ")
    for part in given.split(" "):
        assert part in " ".join(words)
    assert "--checkpoint best" not in attempt
