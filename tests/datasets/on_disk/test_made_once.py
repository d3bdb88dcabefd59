"""What takes long to make of data is made once, and again if it is damaged."""

from __future__ import annotations

import os
import shutil

import pytest

from rtrain.datasets.on_disk.made_once import identity, made_once


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rtrain" / "things"


def make(folder):
    (folder / "a").write_text("one")
    (folder / "inner").mkdir()
    (folder / "inner" / "b").write_text("two")


def refuse(folder):
    raise AssertionError("is made again")


def content(folder):
    return (folder / "a").read_text(), (folder / "inner" / "b").read_text()


DAMAGES = {
    "a file is gone": lambda folder: (folder / "a").unlink(),
    "an inner file is gone": lambda folder: (folder / "inner" / "b").unlink(),
    "a file is shorter": lambda folder: os.truncate(folder / "inner" / "b", 1),
    "a file is empty": lambda folder: os.truncate(folder / "a", 0),
    "the list is gone": lambda folder: (folder / "sizes.json").unlink(),
    "the list is empty": lambda folder: os.truncate(folder / "sizes.json", 0),
    "all is gone": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_made_again(damage):
    folder = made_once("things", "x", make)
    assert content(made_once("things", "x", refuse)) == ("one", "two")
    damage(folder)
    assert content(made_once("things", "x", make)) == ("one", "two")
    assert content(made_once("things", "x", refuse)) == ("one", "two")


def test_what_is_there_can_be_used_where_nothing_can_be_written(cache):
    made_once("things", "x", make)
    for name in ("x", "y"):
        shutil.rmtree(cache / f"{name}.lock", ignore_errors=True)
        (cache / f"{name}.lock").unlink(missing_ok=True)
        (cache / f"{name}.lock").mkdir()  # can't be opened to lock it
    assert content(made_once("things", "x", refuse)) == ("one", "two")
    with pytest.raises(OSError, match="directory"):
        made_once("things", "y", make)


def test_files_of_one_name_size_and_time_are_told_apart(tmp_path):
    files = []
    for name in ("first", "second"):
        (tmp_path / name / "data").mkdir(parents=True)
        files.append(tmp_path / name / "data" / "x.csv")
        files[-1].write_text(f"{name[0]},1\n")
        os.utime(files[-1], (1_000_000_000, 1_000_000_000))
    assert identity(files[:1]) != identity(files[1:])
    before = identity(files[:1])
    assert before == identity(files[:1])
    other = tmp_path / "other"
    other.write_text("o,1\n")
    os.utime(other, (1_000_000_000, 1_000_000_000))
    other.rename(files[0])
    assert identity(files[:1]) != before
