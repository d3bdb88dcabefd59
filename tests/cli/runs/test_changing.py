"""``rtrain runs tag``, ``note``, ``rm``, ``gc`` and ``export`` as a user types them."""

from __future__ import annotations

import io
import sys

import pytest
from made_runs import add_checkpoint, make_run, make_sweep

from rtrain.cli.app import run
from rtrain.runs.filesystem.lock import locked


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    made = make_run(tmp_path / "runs", "mlp", "0a1b", config={"run": {"tags": ["old"]}})
    add_checkpoint(made)
    return made


class Terminal(io.StringIO):
    def isatty(self):
        return True


def answer(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", Terminal(text))


def test_tags(capsys):
    assert run(["runs", "tag", "last", "good", "v2"]) == 0
    assert capsys.readouterr().out == "old good v2\n"
    assert run(["runs", "tag", "last", "--remove", "old", "-r", "v2"]) == 0
    assert capsys.readouterr().out == "good\n"
    assert run(["runs", "ls", "-w", "good in tags"]) == 0
    assert "good" in capsys.readouterr().out


def test_a_tag_that_is_not_there_is_told_and_a_wrong_tracker_once(capsys):
    assert run(["runs", "tag", "last", "--remove", "nosuch"]) == 0
    assert "nosuch" in capsys.readouterr().err
    assert run(["runs", "sync", "last", "--to", "nosuch"]) == 2
    assert capsys.readouterr().err.count("available:") == 1


def test_notes(capsys):
    assert run(["runs", "note", "0a1b", "try more layers"]) == 0
    assert run(["runs", "note", "0a1b"]) == 0
    assert capsys.readouterr().out == "try more layers\n"
    assert run(["runs", "note", "0a1b", ""]) == 0
    assert run(["runs", "note", "0a1b"]) == 0
    assert capsys.readouterr().out == "no note\n"


@pytest.mark.parametrize(("typed", "is_there"), [("y\n", False), ("n\n", True), ("\n", True), ("", True)])
def test_removing_asks(typed, is_there, folder, capsys, monkeypatch):
    answer(monkeypatch, typed)
    assert run(["runs", "rm", "0a1b"]) == int(is_there)
    assert folder.exists() == is_there
    assert "Remove 1 run, " in capsys.readouterr().err


def test_removing_without_a_terminal_needs_yes(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert run(["runs", "rm", "0a1b"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert run(["runs", "rm", "0a1b", "--checkpoints", "--yes"]) == 0
    assert list((folder / "checkpoints").iterdir()) == []
    assert run(["evaluate", "0a1b"]) == 1
    assert "They have been removed" in capsys.readouterr().err
    assert run(["runs", "rm", "0a1b", "-y"]) == 0
    assert not folder.exists()


def test_nothing_is_removed_if_one_of_the_runs_is_running(folder, capsys, tmp_path):
    other = make_run(tmp_path / "runs", "mlp", "0a1c")
    with locked(other):
        assert run(["runs", "rm", "0a1b", "0a1c", "--yes"]) == 2
    assert "0a1c is running" in capsys.readouterr().err
    assert folder.exists()


def test_leftovers_are_listed_and_removed(folder, capsys, monkeypatch):
    assert run(["runs", "gc"]) == 0
    assert capsys.readouterr().out == "nothing to remove.\n"
    left = folder / "checkpoints" / ".epoch-0009-ab12cd.tmp"
    left.mkdir()
    (left / "weights").write_bytes(bytes(2000))
    answer(monkeypatch, "y\n")
    assert run(["runs", "gc"]) == 0
    shown = capsys.readouterr()
    assert ".epoch-0009-ab12cd.tmp  2.0 kB" in shown.err
    assert shown.out == "removed 2.0 kB\n"
    assert not left.exists()


def test_events_are_exported(tmp_path, capsys):
    assert run(["runs", "export", "-o", "e.csv"]) == 0
    assert capsys.readouterr().out == "3 events of 1 run -> e.csv\n"
    assert len((tmp_path / "e.csv").read_text().splitlines()) == 4


def test_runs_are_removed_by_what_they_fulfil(folder, tmp_path, capsys):
    bad = [make_run(tmp_path / "runs", "mlp", f"bad{n}", minutes=n, status="failed") for n in (1, 2)]
    swept = make_sweep(tmp_path / "runs", rates=(0.1, 0.4))
    assert run(["runs", "rm", "--where", "status == failed", "--yes"]) == 0
    assert (folder.exists(), swept.exists(), [one.exists() for one in bad]) == (True, True, [False, False])
    assert run(["runs", "rm", "--where", "status == failed", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("no run matches --where.\n")
    assert run(["runs", "rm", "--where", "val/loss < 9", "--yes"]) == 0
    assert (folder.exists(), swept.exists()) == (False, True)


@pytest.mark.parametrize("words", [[], ["last", "--where", "status == failed"]])
def test_runs_to_remove_are_named_or_described(words, folder, capsys):
    assert run(["runs", "rm", *words, "--yes"]) == 2
    assert "rtrain runs rm --where" in capsys.readouterr().err
    assert folder.exists()


def test_a_run_that_is_running_is_not_removed_by_what_it_fulfils(folder, tmp_path):
    running = make_run(tmp_path / "runs", "mlp", "0b1b", minutes=1, status="running")
    with locked(running):
        assert run(["runs", "rm", "--where", "val/loss < 9", "--yes"]) == 0
    assert (folder.exists(), running.exists()) == (False, True)


@pytest.mark.parametrize(
    ("place", "said"), [("s3://bucket/runs", "s3://bucket/runs is in a store"), ("nowhere", "nowhere is not a folder")]
)
def test_gc_takes_folders_of_this_machine(place, said, capsys):
    assert run(["runs", "gc", place, "--yes"]) == 2
    assert said in capsys.readouterr().err
