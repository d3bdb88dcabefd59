"""``rtrain runs show``, ``compare`` and ``logs`` as a user types them."""

from __future__ import annotations

import pytest
from made_runs import make_run, make_sweep

from rtrain.cli.app import run


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    folder = make_run(tmp_path / "runs", "mlp", "0a1b")
    make_run(tmp_path / "runs", "mlp", "0a1c", minutes=10, losses=(0.3,))
    make_sweep(tmp_path / "runs")
    (folder / "logs").mkdir()
    (folder / "logs" / "driver.log").write_text("one\ntwo\x1b[2J\n")
    return tmp_path


def test_a_run_a_trial_and_a_sweep_are_shown(capsys):
    assert run(["runs", "show", "0a1b"]) == 0
    assert capsys.readouterr().out.startswith("mlp  0a1b  succeeded")
    assert run(["runs", "show", "330826/1"]) == 0
    assert capsys.readouterr().out.startswith("mlp  330826/1  succeeded")


def test_the_link_to_the_best_trial_is_shown_as_that(capsys, project):
    (project / "runs" / "mlp-sweep-330826" / "best").symlink_to("000-4d4a7ab0", target_is_directory=True)
    assert run(["runs", "show", "runs/mlp-sweep-330826/best"]) == 0
    assert capsys.readouterr().out.startswith("mlp  330826/0  succeeded")


@pytest.mark.parametrize("verb", ["compare", "diff"])
def test_runs_are_compared(verb, capsys):
    assert run(["runs", verb, "0a1b", "last"]) == 0
    assert "\nval/loss" in capsys.readouterr().out


def test_one_run_can_not_be_compared(capsys):
    assert run(["runs", "compare", "last", "last"]) == 2
    assert "try: rtrain runs ls" in capsys.readouterr().err


def test_logs_are_printed_without_what_a_terminal_obeys(capsys):
    assert run(["runs", "logs", "0a1b"]) == 0
    assert capsys.readouterr().out == "one\ntwo\\x1b[2J\n"
    assert run(["runs", "logs", "0a1b", "-f", "-n", "1"]) == 0
    assert capsys.readouterr().out == "two\\x1b[2J\n"
    assert run(["runs", "logs", "0a1c"]) == 2
    assert "logs has no driver.log" in capsys.readouterr().err


def test_a_folder_that_is_no_run_is_an_error(capsys, project):
    (project / "other").mkdir()
    assert run(["runs", "show", "other"]) == 1
    assert "is not a run directory" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["logs"], ["reproduce"]])
def test_what_needs_one_run_names_the_trials_of_a_sweep(words, capsys):
    assert run(["runs", *words, "330826"]) == 2
    assert "330826/0" in capsys.readouterr().err


def test_a_killed_run_is_shown_as_far_as_its_events_go(capsys, project):
    from rtrain.runs.events import Event, EventLog, events_file

    folder = make_run(project / "runs", "killed", "0a1e", status="running", losses=(0.5,))
    log = EventLog(events_file(folder))
    log.append(Event.at(0.0, step=77, epoch=2, metrics={"val/loss": 0.25}))
    log.close()
    assert run(["runs", "show", "0a1e"]) == 0
    shown = capsys.readouterr().out
    assert "after step 77" in " ".join(shown.split())
    assert next(line.split()[1] for line in shown.splitlines() if line.startswith("val/loss")) == "0.25"
