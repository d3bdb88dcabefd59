"""``rtrain runs attach`` and ``stop`` as a user types them."""

from __future__ import annotations

import pytest
from made_runs import make_run

from rtrain.cli.app import run
from rtrain.runs.filesystem.lock import locked


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
    assert "has ended already: succeeded" in capsys.readouterr().err


def test_a_run_that_is_ending_is_only_waited_for(project, capsys, monkeypatch):
    folder = make_run(project / "runs")
    with locked(folder) as lock:
        lock.note_end("preempted", "stopped by SIGTERM")
        monkeypatch.setattr("os.kill", lambda *_: pytest.fail("a signal was sent"))
        monkeypatch.setattr("rtrain.runs.filesystem.lock.wait_until_free", lambda _: lock.close())
        assert run(["runs", "stop", "last", "--wait"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert "has been asked to save and end already" in first
    assert last.endswith(": succeeded")
