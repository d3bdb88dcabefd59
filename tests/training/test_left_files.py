"""Which runs trained at the same time: whatever stands below the root, a note never ends a run."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest
from made_runs import make_run

from rtrain.runs.manifest import read_manifest
from rtrain.training import left_files
from rtrain.training.left_files import trained_since

LONG_AGO = "2000-01-01T00:00:00+00:00"
LOOP = {"trainer": {"type": "torch", "train_loop": "own:train"}}


@pytest.fixture
def runs(tmp_path):
    """Two runs of loops in one project."""
    facts = {"config": LOOP, "files": {"folder": str(tmp_path), "new": ["a"], "replaced": []}}
    return [make_run(tmp_path, short_id=short, **facts) for short in ("000a", "000b")]


def others_of(run, root):
    return trained_since(LONG_AGO, root, run, read_manifest(run))


def test_another_run_is_found_and_the_run_itself_is_not(runs, tmp_path):
    assert others_of(runs[0], tmp_path) == [runs[1]]
    (tmp_path / "link").symlink_to(runs[0].parent)
    assert others_of(tmp_path / "link" / runs[0].name, tmp_path) == [runs[1]]


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError, NotADirectoryError])
@pytest.mark.parametrize("where", ["root", "name", "run"])
def test_what_can_not_be_read_is_passed_over(runs, tmp_path, monkeypatch, where, error):
    closed = {"root": tmp_path, "name": runs[1].parent, "run": runs[1]}[where]
    scandir = os.scandir

    @contextmanager
    def refusing(folder):
        if os.fspath(folder) == str(closed):
            raise error(13, "no", str(folder))
        with scandir(folder) as found:
            yield found

    monkeypatch.setattr(left_files.os, "scandir", refusing)
    assert others_of(runs[0], tmp_path) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_damaged_run_is_passed_over(runs, tmp_path, text):
    (runs[1] / "manifest.json").write_text(text)
    assert others_of(runs[0], tmp_path) == []
