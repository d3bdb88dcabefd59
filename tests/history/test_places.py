"""Where runs are found, and where not."""

from __future__ import annotations

import os

import pytest
from made_runs import make_run, make_sweep

from rtrain.errors import ConfigError
from rtrain.history.places import default_folders, find_places


def found(*folders):
    return {(os.path.relpath(place.path), place.kind) for place in find_places(folders)}


def test_runs_trials_and_sweeps_are_found_however_deep(project):
    run, sweep = make_run(project / "runs"), make_sweep(project / "runs")
    deep = make_run(project / "multirun" / "2026-11-01" / "12-00-00")
    trials = {(str(path.relative_to(project)), "trial") for path in sweep.iterdir() if path.is_dir()}
    assert len(trials) == 2
    expected = {(str(run.relative_to(project)), "run"), (str(sweep.relative_to(project)), "sweep"), *trials}
    assert found("runs") == expected
    assert found(".") == expected | {(str(deep.relative_to(project)), "run")}


def test_a_folder_may_be_a_run_a_trial_or_a_sweep_itself(project):
    run, sweep = make_run(project / "runs"), make_sweep(project / "runs")
    assert [place.kind for place in find_places([run])] == ["run"]
    assert [place.kind for place in find_places([sweep])] == ["sweep", "trial", "trial"]
    assert [place.kind for place in find_places([sweep / "000-4d4a7ab0"])] == ["trial"]


def test_links_are_followed_once_and_the_best_trial_is_found_once(project):
    run, sweep = make_run(project / "elsewhere"), make_sweep(project / "runs")
    (sweep / "best").symlink_to("000-4d4a7ab0", target_is_directory=True)
    (project / "runs" / "disk").symlink_to(project / "elsewhere", target_is_directory=True)
    (project / "runs" / "loop").symlink_to(project / "runs", target_is_directory=True)
    kinds = sorted(kind for _, kind in found("runs"))
    assert kinds == ["run", "sweep", "trial", "trial"]
    assert (f"runs/disk/{run.relative_to(project / 'elsewhere')}", "run") in found("runs")


def test_a_run_that_lost_its_manifest_is_found_and_a_project_is_not(project):
    run = make_run(project / "runs")
    (run / "checkpoints").mkdir()
    (run / "config.yaml").write_text("")
    (run / "manifest.json").unlink()
    (project / "runs" / "notes").mkdir()
    (project / "runs" / "notes" / "config.yaml").write_text("")
    assert found("runs") == {(str(run.relative_to(project)), "run")}


def test_hidden_folders_are_left_out(project):
    run = make_run(project / "runs")
    run.rename(run.with_name(".older-run"))
    assert found("runs") == set()


def test_the_default_is_what_configs_of_the_project_say(project):
    assert default_folders() == []
    for name in ("runs", "big"):
        (project / name).mkdir()
    (project / "configs").mkdir()
    (project / "configs" / "a.yaml").write_text("run: {root_dir: big}\n")
    (project / "configs" / "b.yaml").write_text("run: {root_dir: '${oc.env:ELSEWHERE}'}\n")
    (project / "configs" / "c.yaml").write_text("run: {root_dir: [\n")
    assert default_folders() == ["runs", "big"]


def test_a_folder_that_does_not_exist_is_an_error():
    with pytest.raises(ConfigError, match="nowhere"):
        find_places(["nowhere"])
