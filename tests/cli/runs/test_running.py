"""``rtrain runs attach`` and ``stop`` as a user types them."""

from __future__ import annotations

import pytest
from made_runs import make_run

from rtrain.cli.app import run


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_that_is_over_is_watched_to_its_end(project, capsys):
    make_run(project / "runs", resources={"num_workers": 0})
    assert run(["runs", "attach", "last"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("training mlp with torch in this process")
    assert [line.split()[0] for line in lines[1:4]] == ["epoch"] * 3
    assert lines[-5].startswith("result      succeeded")


def test_of_a_killed_run_it_is_said_that_it_was(project, capsys):
    make_run(project / "runs", resources={"num_workers": 0}, status="running")
    assert run(["runs", "attach", "last"]) == 1
    assert "ended without an error message after step 30" in capsys.readouterr().err


def test_a_run_that_is_not_running_can_not_be_stopped(project, capsys):
    make_run(project / "runs")
    assert run(["runs", "stop", "last"]) == 2
    assert "is not running" in capsys.readouterr().err
