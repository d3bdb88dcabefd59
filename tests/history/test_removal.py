"""Runs, checkpoints and leftovers are removed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import add_checkpoint, make_run, make_sweep

from rtrain.cli.app import run as rtrain
from rtrain.errors import ConfigError, StrangeFileError
from rtrain.history.index import list_rows, read_row
from rtrain.history.removal import (
    check_free,
    dependent_runs,
    find_leftovers,
    remove_checkpoints,
    remove_leftover,
    remove_run,
)
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.manifest import read_manifest
from rtrain.runs.run import Run
from rtrain.runs.verify import verify_run


def test_a_run_is_removed_with_all_that_is_in_it(project):
    run, other = make_run(project / "runs"), make_run(project / "runs", short_id="0a1c")
    add_checkpoint(run)
    remove_run(run)
    assert [row.path for row in list_rows()] == [other]
    assert [path.name for path in run.parent.iterdir()] == [other.name]


def test_what_links_lead_to_is_left_alone(project, tmp_path):
    run = make_run(project / "runs")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("")
    (run / "data").symlink_to(tmp_path / "data", target_is_directory=True)
    remove_run(run)
    assert (tmp_path / "data" / "file").exists()


def test_the_best_trial_is_removed_with_the_link_to_it(project):
    sweep = make_sweep(project / "runs")
    (sweep / "best").symlink_to("001-4d4a7ab1", target_is_directory=True)
    remove_run(read_row(sweep / "best").path)
    assert not (sweep / "best").is_symlink()
    assert [row.path.name for row in list_rows() if row.kind == "trial"] == ["000-4d4a7ab0"]
    remove_run(sweep)
    assert list_rows() == []


@pytest.mark.parametrize("remove", [remove_run, remove_checkpoints])
def test_what_is_running_is_never_removed(remove, project):
    run, sweep = make_run(project / "runs"), make_sweep(project / "runs")
    checkpoint = add_checkpoint(run)
    with locked(run), pytest.raises(ConfigError, match="in use"):
        remove(run)
    with locked(sweep / "001-4d4a7ab1"):
        with pytest.raises(ConfigError, match="in use"):
            remove(sweep)
        with pytest.raises(ConfigError, match="001-4d4a7ab1 is running"):
            check_free([read_row(run), read_row(sweep)])
    with locked(sweep):
        with pytest.raises(ConfigError, match="in use"):
            remove(sweep / "000-4d4a7ab0")
        with pytest.raises(ConfigError, match="sweep-330826 is running"):
            check_free([read_row(sweep / "000-4d4a7ab0")])
    check_free([read_row(run), read_row(sweep)])
    assert checkpoint.is_dir()
    assert len(list_rows()) == 4


def test_without_its_checkpoints_a_run_keeps_its_record(project):
    run = make_run(project / "runs")
    (run / "config.yaml").write_text("")
    add_checkpoint(run, 10)
    add_checkpoint(run, 20)
    best = read_manifest(run).best
    remove_checkpoints(run)
    assert verify_run(run) == []
    found = Run.load(run)
    assert (found.checkpoints, found.best_checkpoint, found.manifest.best) == ([], None, best)
    assert len(list(found.events())) == 3


def test_the_checkpoints_of_all_trials_of_a_sweep_are_removed(project):
    sweep = make_sweep(project / "runs")
    trial = sweep / "000-4d4a7ab0"
    add_checkpoint(trial)
    remove_checkpoints(sweep)
    assert Run.load(trial).checkpoints == []
    assert list((trial / "checkpoints").iterdir()) == []


def test_checkpoints_behind_a_link_stay(project, tmp_path):
    run, other = make_run(project / "runs"), make_run(tmp_path / "elsewhere")
    checkpoint = add_checkpoint(other)
    (run / "checkpoints").symlink_to(other / "checkpoints", target_is_directory=True)
    with pytest.raises(StrangeFileError):
        remove_checkpoints(run)
    assert checkpoint.is_dir()


@pytest.fixture
def left(project):
    run, sweep = make_run(project / "runs"), make_sweep(project / "runs")
    kept = add_checkpoint(run)
    made = [
        run / ".manifest.json.12-ab12cd.tmp",
        sweep / ".sweep.json.12-ab12cd.tmp",
        run / "checkpoints" / ".epoch-0002-ab12cd.tmp",
        run / "checkpoints" / ".epoch-0001-ab12cd.old",
        run.parent / ".removed-gone-ab12cd",
    ]
    for path in made:
        path.mkdir() if path.parent.name == "checkpoints" or "removed" in path.name else path.write_text("x")
    (run / "predictions.parquet.tmp").write_text("mine")
    (run.parent / ".damaged-x").mkdir()
    (run.parent / ".damaged-x" / "config.yaml").write_text("a: 1")
    for mine in (
        *(project / "runs" / name for name in (".removed-photos", ".older-archive", ".damaged-goods", ".removed-2025")),
        *(run / "checkpoints" / name for name in (".mine.old", ".notes.tmp", ".epoch.tmp", ".reached")),
    ):
        mine.mkdir()
        (mine / "precious").write_text("mine")
    return {"run": run, "made": set(made), "kept": kept}


def test_leftovers_are_found_and_removed_and_nothing_else(left):
    found = find_leftovers()
    assert {one.path for one in found} == left["made"]
    for one in found:
        remove_leftover(one)
    assert not any(path.exists() for path in left["made"])
    assert left["kept"].is_dir()
    assert (left["run"] / "predictions.parquet.tmp").exists()
    assert len(list(left["run"].parent.parent.rglob("precious"))) == 8
    assert find_leftovers() == []
    assert [one.path.name for one in find_leftovers(set_aside=True)] == [".damaged-x"]


def test_leftovers_of_a_run_that_goes_on_are_left_alone(left):
    with locked(left["run"]):
        assert not any(Path(left["run"]) in one.path.parents for one in find_leftovers())
    found = find_leftovers()
    with locked(left["run"]):
        for one in found:
            remove_leftover(one)
        assert (left["run"] / ".manifest.json.12-ab12cd.tmp").exists()


def test_runs_whose_adapters_need_what_is_removed_are_told(project, capsys):
    base, needing, other = (
        make_run(project / "runs", name, config={"run": {"root_dir": "runs"}}) for name in ("base", "adapters", "other")
    )
    checkpoint = add_checkpoint(base)
    for run, place in ((needing, checkpoint), (other, project / "elsewhere")):
        (add_checkpoint(run) / "base.json").write_text(json.dumps({"pretrained": "x", "folder": str(place)}))
    assert list(dependent_runs([read_row(base)])) == [(needing, checkpoint)]
    assert list(dependent_runs([read_row(base), read_row(needing)])) == []
    assert list(dependent_runs([read_row(needing)])) == []
    for words in (["--checkpoints"], []):
        assert rtrain(["runs", "rm", str(base), "--yes", *words]) == 0
        assert f"adapters/{needing.name} needs runs/base/{base.name}/checkpoints" in capsys.readouterr().err
