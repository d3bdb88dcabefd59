"""Copies of runs in a store are listed."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest
from made_runs import make_run

import rtrain
from rtrain.cli.app import run
from rtrain.errors import ConfigError
from rtrain.history.index import list_rows


@pytest.fixture
def store(project, tmp_path):
    """A store with a run that succeeded, and one that another machine works on."""
    make_run(tmp_path / "store", "mlp", "0a1b", losses=(0.5,))
    copied = {"complete": False, "copied_at": datetime.now(UTC).isoformat()}
    make_run(tmp_path / "store", "trees", "0a1c", minutes=5, losses=(0.2,), status="running", storage=copied)
    (tmp_path / "store" / "trees" / "other").mkdir()
    return f"file://{tmp_path}/store"


def test_runs_in_a_store_are_listed_with_those_of_folders(store, project):
    here = make_run(project / "runs", "mlp", "0a1d", minutes=9)
    rows = list_rows([store, "runs"])
    assert [(row.id, row.status) for row in rows] == [
        ("0a1d", "succeeded"),
        ("0a1c", "running"),
        ("0a1b", "succeeded"),
    ]
    assert rows[0].path == here
    assert rows[1].place == f"{store}/trees/2026-11-01_12-05-00-0a1c"


@pytest.mark.parametrize(
    ("labels", "tags", "note"),
    [
        (None, ["a"], None),
        ('{"tags": ["b"], "removed": ["a"], "note": "good"}', ["b"], "good"),
        ("[]", ["a"], None),
        ("{", ["a"], None),
    ],
)
def test_labels_of_a_copy_are_those_of_the_run(labels, tags, note, store, tmp_path):
    run = make_run(tmp_path / "store", "labelled", "0a1e", config={"run": {"tags": ["a"]}})
    if labels is not None:
        (run / "labels.json").write_text(labels)
    (row,) = list_rows([f"{store}/labelled"])
    assert (row.get("tags"), row.get("note")) == (tags, note)


def test_the_best_run_of_a_store_is_named_by_its_url(store, capsys):
    assert run(["runs", "best", store, "-w", "name == mlp"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"best: {store}/mlp/2026-11-01_12-00-00-0a1b"
    assert run(["runs", "ls", f"{store}/trees", "-c", "path"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"{store}/trees/2026-11-01_12-05-00-0a1c"]


def test_a_store_without_runs_has_none_and_python_needs_run_directories(store, tmp_path):
    with pytest.raises(ConfigError, match="rtrain runs fetch"):
        rtrain.runs(store)
    shutil.rmtree(tmp_path / "store")
    assert list_rows([store]) == []
