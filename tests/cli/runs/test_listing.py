"""``rtrain runs ls``, ``best`` and ``path`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import make_run, make_sweep

from rtrain.cli.app import run


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs", "mlp", "0a1b", losses=(0.5,), error={"type": "ValueError"})
    make_run(tmp_path / "runs", "mlp", "0a1c", losses=(0.7,), minutes=10, status="failed")
    make_sweep(tmp_path / "runs", rates=(0.4, 0.8))
    return tmp_path


def test_runs_are_listed(capsys):
    assert run(["runs", "ls"]) == 0
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()] == ["id", "0a1c", "330826", "0a1b"]
    assert shown.err == ""


def test_trials_are_listed_on_request_and_by_where(capsys):
    assert run(["runs", "ls", "--trials"]) == 0
    assert "330826/1" in capsys.readouterr().out
    assert run(["runs", "ls", "--where", "lr > 0.5"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["id", "330826/1"]
    assert run(["runs", "ls", "runs/mlp-sweep-330826"]) == 0
    assert "330826/1" in capsys.readouterr().out


CALLBACKS = [{"_target_": "hooks.Killer", "step": 6}, {"_target_": "hooks.Recorder"}]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("+seed", ["id", "name", "trainer", "status", "age", "took", "val/loss", "seed"]),
        ("+seed,+workers", ["id", "name", "trainer", "status", "age", "took", "val/loss", "seed", "workers"]),
        ("+id,host", ["id", "name", "trainer", "status", "age", "took", "val/loss", "seed", "host"]),
        ("seed,id", ["seed", "id"]),
    ],
)
def test_a_column_that_is_asked_for_is_shown_once(columns, found, project, capsys):
    for seed in (1, 2):
        make_run(project / "more", short_id=f"00a{seed}", config={"run": {"seed": seed}}, seed=seed)
    assert run(["runs", "ls", "more", "-c", columns]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == found


@pytest.fixture
def mixed(project):
    """A folder in which only one run has lr and reported accuracy."""
    torch = {"trainer": {"type": "torch", "optimizer": {"lr": 0.1}}}
    make_run(project / "more", short_id="00a1", config=torch)
    make_run(project / "more", short_id="00a2", config={"trainer": {"type": "xgboost"}}, minutes=1)
    return project / "more"


@pytest.mark.parametrize("chosen", [["--where", "trainer == xgboost"], ["-n", "1"]])
@pytest.mark.parametrize("words", [["-c", "id,lr"], ["-c", "+lr"], ["-c", "id", "-s", "lr"], ["-c", "id", "-s", "-lr"]])
def test_names_of_fields_do_not_depend_on_which_runs_are_shown(chosen, words, mixed, capsys):
    assert run(["runs", "ls", "more", *chosen, *words]) == 0
    assert run(["runs", "ls", "more", *chosen, *[one.replace("lr", "lrr") for one in words]]) == 2
    assert "there is no field 'lrr'" in capsys.readouterr().err


def test_a_name_that_is_ambiguous_in_the_folder_may_be_clear_among_the_runs_shown(project, capsys):
    for number, trainer in enumerate(({"type": "jax", "a": {"decay": 0.2}}, {"type": "torch", "b": {"decay": 0.3}})):
        make_run(project / "more", short_id=f"00a{number}", config={"trainer": trainer})
    assert run(["runs", "ls", "more", "-c", "id,decay"]) == 2
    assert "ambiguous" in capsys.readouterr().err
    assert run(["runs", "ls", "more", "-w", "trainer == jax", "-c", "id,decay"]) == 0
    assert capsys.readouterr().out.split() == ["id", "decay", "00a0", "0.2"]


def test_the_best_by_what_only_other_runs_have(mixed, capsys):
    assert run(["runs", "best", "more", "-w", "trainer == xgboost", "-m", "lr", "--mode", "min"]) == 1
    assert "no run has reported trainer.optimizer.lr" in capsys.readouterr().err


def test_a_column_that_is_added_after_others_leads_to_the_sign_in_front(capsys):
    assert run(["runs", "ls", "-c", "id,+seed"]) == 2
    assert "-c +id,seed" in capsys.readouterr().err


def test_best_values_of_different_metrics_are_not_mixed(project, capsys):
    for number, (monitor, value) in enumerate([("loss", 1.2), ("accuracy", 0.9), ("loss", 0.4), ("accuracy", 0.7)]):
        best = {"monitor": monitor, "mode": "min", "value": value}
        make_run(project / "more", short_id=f"00a{number}", best=best)
    for by, found in (("best", ["00a3", "00a1", "00a2", "00a0"]), ("-best", ["00a1", "00a3", "00a0", "00a2"])):
        assert run(["runs", "ls", "more", "-s", by, "-c", "id"]) == 0
        assert capsys.readouterr().out.split()[1:] == found


def test_a_part_of_a_list_is_shown_by_its_target_or_as_json(project, capsys):
    make_run(project / "more", config={"run": {"callbacks": CALLBACKS, "other": [{"a": 1}]}})
    assert run(["runs", "ls", "more", "-c", "run.callbacks,run.other"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("  ") == ["hooks.Killer,hooks.Recorder", '{"a":1}']


def test_json_holds_every_fact(capsys):
    assert run(["runs", "ls", "--json", "--sort", "best"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in found] == ["330826", "0a1b", "0a1c"]
    assert found[1]["started"] == "2026-11-01T12:00:00+00:00"
    assert found[1]["metrics"] == {"val/loss": 0.5}
    assert found[1]["config"]["trainer.type"] == "torch"
    assert found[1]["error"] == "ValueError"


def test_what_the_limit_leaves_out_is_counted(capsys):
    assert run(["runs", "ls", "-n", "1"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert shown.err.startswith("2 more: ")


def test_nothing_to_list_is_said(capsys, tmp_path, monkeypatch):
    assert run(["runs", "ls", "--where", "best > 3"]) == 0
    assert "--where" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert run(["runs", "ls"]) == 0
    assert "Name a folder" in capsys.readouterr().err
    assert run(["runs", "best"]) == 2
    assert run(["runs", "export", "-o", "e.csv"]) == 2
    assert list(Path().iterdir()) == []


def test_a_wrong_expression_ends_with_exit_code_2(capsys):
    assert run(["runs", "ls", "--where", "val/los > 1"]) == 2
    error = capsys.readouterr().err
    assert "    ^^^^^^^" in error
    assert "metrics.val/loss" in error


def test_the_best_run_is_shown_with_its_folder(capsys):
    assert run(["runs", "best"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["330826/0", "330826/1", "0a1b", "0a1c"]
    assert lines[-1] == "best: runs/mlp-sweep-330826/000-4d4a7ab0"
    assert run(["runs", "best", "--metric", "val/loss", "--mode", "max", "-n", "1"]) == 0
    assert "0a1c" in capsys.readouterr().out


def test_the_best_by_a_metric_may_monitor_another_one(capsys, project):
    best = {"monitor": "val/accuracy", "mode": "max", "value": 0.9, "step": 1, "epoch": 1}
    make_run(project / "runs", "trees", "0a1e", losses=(0.1,), best=best)
    assert run(["runs", "best", "--metric", "val/loss"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["0a1e", "330826/0", "330826/1"]
    assert "val/loss" in lines[0]


def test_best_by_a_metric_of_unknown_direction_asks_for_it(capsys):
    assert run(["runs", "best", "--metric", "step"]) == 2
    assert "--mode min" in capsys.readouterr().err


def test_the_folder_of_a_run(capsys):
    assert run(["runs", "path", "last:mlp"]) == 0
    assert capsys.readouterr().out == "runs/mlp/2026-11-01_12-10-00-0a1c\n"
    assert run(["runs", "path", "nothing"]) == 2
    assert "available: mlp" in capsys.readouterr().err
    assert run(["runs", "path", "mlp"]) == 2
    assert "did you mean: last:mlp or best:mlp" in capsys.readouterr().err
