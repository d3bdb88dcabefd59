"""Tags and notes of runs and sweeps in a store are read and written there."""

from __future__ import annotations

import json
import shutil

import pytest
from made_runs import make_run, make_sweep

from rtrain.cli.app import run
from rtrain.history.index import list_rows
from rtrain.runs.labels import change_labels


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture(params=["run", "sweep", "trial"])
def copy(request, store):
    """The folder of a copy of each kind."""
    if request.param == "run":
        return make_run(store, config={"run": {"tags": ["old"], "notes": "first"}})
    sweep = make_sweep(store)
    return sweep if request.param == "sweep" else sweep / "001-4d4a7ab1"


def said(capsys, *words):
    assert run(["runs", *words]) == 0
    return capsys.readouterr().out


def test_labels_are_written_to_the_copy(copy, store, capsys):
    url = f"file://{copy}/"
    before = list(copy.iterdir())
    kept = said(capsys, "tag", url).replace("no tags", "").split()
    assert said(capsys, "tag", url, "good", "v2").split() == [*kept, "good", "v2"]
    assert said(capsys, "tag", url, "-r", "v2", "-r", "old") == "good\n"
    assert said(capsys, "tag", url) == "good\n"
    said(capsys, "note", url, "try more")
    assert said(capsys, "note", url) == "try more\n"
    assert set(copy.iterdir()) == {*before, copy / "labels.json"}
    (row,) = json.loads(said(capsys, "ls", f"file://{store}", "--json", "-w", "good in tags"))
    assert (row["tags"], row["note"], row["path"]) == (["good"], "try more", f"file://{copy}")


def test_a_tag_that_a_copy_does_not_have_is_told(copy, capsys):
    assert run(["runs", "tag", f"file://{copy}", "--remove", "nosuch"]) == 0
    assert "has no tag 'nosuch'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["tag", "good"], ["note", "good"], ["tag"], ["path"]])
def test_where_no_run_is_nothing_is_written(words, store, capsys):
    (store / "mlp").mkdir(parents=True)
    verb, *rest = words
    assert run(["runs", verb, f"file://{store}/mlp", *rest]) == 2
    assert f"file://{store}/mlp does not exist" in capsys.readouterr().err
    assert list((store / "mlp").iterdir()) == []


def test_the_path_of_a_copy_is_its_url(copy, capsys):
    assert said(capsys, "path", f"file://{copy}/") == f"file://{copy}\n"


def test_a_sweep_of_a_store_is_listed_as_one_row_and_its_trials_on_request(store, capsys):
    sweep, url = make_sweep(store), f"file://{store}"
    change_labels(sweep, lambda labels: labels.tagged(["paper"]))
    make_run(store, "mlp", "0a1b", minutes=9)
    assert [(row.kind, row.id, row.get("tags")) for row in list_rows([url])] == [
        ("run", "0a1b", []),
        ("trial", "330826/1", []),
        ("sweep", "330826", ["paper"]),
        ("trial", "330826/0", []),
    ]
    assert [row["id"] for row in json.loads(said(capsys, "ls", url, "--json"))] == ["0a1b", "330826"]
    by_name = json.loads(said(capsys, "ls", f"file://{sweep}/", "--json"))
    assert sorted(row["id"] for row in by_name) == ["330826", "330826/0", "330826/1"]


def test_a_damaged_sweep_of_a_store_is_listed_as_that(store):
    sweep = make_sweep(store)
    (sweep / "sweep.json").write_text("{")
    shutil.rmtree(sweep / "001-4d4a7ab1")
    assert [(row.kind, row.status) for row in list_rows([f"file://{sweep}"])] == [
        ("trial", "succeeded"),
        ("sweep", "damaged"),
    ]


@pytest.mark.parametrize("content", ["{", "[]", '{"tags": "abc"}', '{"tags": ["a"], "note": "precious",}'])
@pytest.mark.parametrize("prefix", ["", "file://"])
def test_labels_that_cannot_be_read_are_not_replaced(copy, prefix, content, capsys):
    (copy / "labels.json").write_text(content)
    assert said(capsys, "tag", f"{prefix}{copy}")
    for words in (["tag", f"{prefix}{copy}", "good"], ["note", f"{prefix}{copy}", "good"]):
        assert run(["runs", *words]) == 1
        assert f"{copy}/labels.json can't be read" in capsys.readouterr().err
    assert (copy / "labels.json").read_text() == content


def test_an_empty_tag_is_refused(copy, capsys):
    assert run(["runs", "tag", f"file://{copy}", " "]) == 2
    assert not (copy / "labels.json").exists()


def test_the_labels_of_a_private_copy_are_private(store, capsys):
    home = make_run(store, config={"run": {"private": True}})
    said(capsys, "tag", f"file://{home}", "good")
    assert (home / "labels.json").stat().st_mode & 0o077 == 0
