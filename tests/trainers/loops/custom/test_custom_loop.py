"""Whole runs of loops in this process: seeds, resumes, limits, and what is refused before anything starts."""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import CheckpointError, ConfigError, TrainingError
from rtrain.runs.run import Run
from rtrain.trainers.trained import read_about, wrote_files

LOOPS = """
import os
import pathlib
import random
import tempfile

import numpy as np
import ray.train
import torch
from ray.train import Checkpoint


def draws(config):
    checkpoint = ray.train.get_checkpoint()
    start = 0 if checkpoint is None else int((pathlib.Path(checkpoint.path) / "number").read_text())
    for number in range(start, config["num_reports"]):
        drawn = {"python": random.random(), "numpy": np.random.rand(), "torch": torch.rand(1)}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "number").write_text(str(number + 1))
            metrics = {"number": number, "note": ["said", config["api_key"]], **drawn}
            metrics |= {} if number else {"first": "said once"}
            ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder))
        if number + 1 == config["fails_after"]:
            raise ValueError("no luck")


def moves_away():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
    ray.train.report({"a": 1})


def of_tune(config):
    import ray.tune

    checkpoint = ray.tune.get_checkpoint()
    start = 0 if checkpoint is None else int((pathlib.Path(checkpoint.path) / "number").read_text())
    for number in range(start, config["num_reports"]):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "number").write_text(str(number + 1))
            ray.tune.report({"number": number}, checkpoint=Checkpoint.from_directory(folder))
        if number + 1 == config["fails_after"]:
            raise ValueError("no luck")


def asks_tune_for_its_trial():
    import ray.tune

    ray.tune.get_context().get_trial_id()


def asks_for_validation():
    ray.train.report({"device": str(ray.train.torch.get_device())})
    ray.train.get_dataset_shard("validation")
"""

KEY = "trainer.train_loop_config.api_key=not-a-good-secret-1"
"""Not written down, so that a resume is given it again."""


@pytest.fixture
def fit(tmp_path):
    """Train a loop, given overrides; the run is in the newest directory."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "seeded_loops.py").write_text(LOOPS)
    (tmp_path / "loop.yaml").write_text(
        "trainer:\n  type: torch\n  train_loop: seeded_loops:draws\n"
        "  train_loop_config: {num_reports: 5, fails_after: 0, api_key: not-a-good-secret-1}\n"
        f"run: {{root_dir: {tmp_path}/runs}}\nscaling: {{num_workers: 0}}\n"
    )
    return lambda *overrides: rtrain.fit(str(tmp_path / "loop.yaml"), overrides)


def drawn(run):
    return [{name: event.metrics[name] for name in ("python", "numpy", "torch")} for event in run.events()]


def newest(folder):
    return Run.load(max((folder / "runs" / "loop").iterdir(), key=lambda path: path.stat().st_mtime))


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(fit):
    first, again, other = drawn(fit("run.seed=7")), drawn(fit("run.seed=7")), drawn(fit("run.seed=8"))
    assert first == again
    assert all(one[name] != two[name] for one, two in zip(first, other, strict=True) for name in one)
    assert len({json.dumps(one) for one in first}) == 5


def test_a_loop_leaves_the_random_numbers_of_the_process_alone(fit):
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).rand(), torch.rand(1).item()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    fit()
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected


def test_a_loop_that_failed_resumes_whatever_was_pruned_and_draws_other_numbers(fit, tmp_path):
    with pytest.raises(TrainingError, match="no luck"):
        fit("trainer.train_loop_config.fails_after=4")
    failed = newest(tmp_path)
    assert len(failed.checkpoints) == 2
    run = rtrain.resume(failed.path, ["trainer.train_loop_config.fails_after=0", KEY])
    assert run.status == "succeeded"
    assert [event.metrics["number"] for event in run.events()] == [0, 1, 2, 3, 4]
    assert [event.step for event in run.events()] == [1, 2, 3, 4, 5]
    assert run.manifest.values["first"] == "said once"
    assert len({json.dumps(one) for one in drawn(run)}) == 5
    assert sorted(path.name for path in (run.path / "checkpoints").glob("*")) == ["report-000004", "report-000005"]


def test_a_loop_that_changes_to_a_folder_that_is_gone_leaves_the_process_where_it_was(fit):
    before = Path.cwd()
    run = fit("trainer.train_loop=seeded_loops:moves_away", "trainer.train_loop_config={}")
    assert run.status == "succeeded"
    assert Path.cwd() == before


def test_a_finished_loop_can_be_extended(fit):
    run = rtrain.resume(fit().path, ["trainer.train_loop_config.num_reports=7", KEY])
    assert [event.metrics["number"] for event in run.events()] == list(range(7))


def test_what_is_no_number_is_in_the_events_and_the_manifest_without_secrets(fit):
    run = fit()
    assert [event.values for event in run.events()][1:] == [{"note": ["said", "***"]}] * 4
    assert run.manifest.values == {"note": ["said", "***"], "first": "said once"}


@pytest.mark.parametrize(
    ("override", "reason"),
    [("run.stop.max_seconds=1e-9", "time limit"), ("trainer.max_steps=2", "max_steps")],
)
def test_limits_end_a_loop(fit, override, reason):
    run = fit(override)
    assert run.status == "succeeded"
    assert run.manifest.exit_reason == reason
    assert len(list(run.events())) == (1 if reason == "time limit" else 2)


@pytest.mark.parametrize("trainer", ["torch", "xgboost"])
@pytest.mark.parametrize(
    ("limit", "wider"),
    [
        ("trainer.max_steps=2", "trainer.max_steps=4"),
        ("run.stop.max_seconds=1e-9", "run.stop.max_seconds=1h"),
        ("run.stop.bounds={number: {max: 0.5}}", "run.stop.bounds={number: {max: 2.5}}"),
    ],
)
def test_a_loop_that_ended_at_a_limit_trains_nothing_until_that_is_wider(fit, tmp_path, limit, wider, trainer):
    if trainer == "xgboost" and "max_steps" in limit:
        pytest.skip("trees count rounds")
    config = tmp_path / "loop.yaml"
    config.write_text(config.read_text().replace("type: torch", f"type: {trainer}"))
    run = fit(limit)
    before = [event.step for event in run.events()]
    for _ in range(2):
        with pytest.warns(UserWarning, match="nothing is left to train") as told:
            again = rtrain.resume(run.path, [KEY])
        assert not [one for one in told if "num_boost_round" in str(one.message) or "max_epochs" in str(one.message)]
        assert (again.status, again.manifest.exit_reason) == ("succeeded", run.manifest.exit_reason)
        assert [event.step for event in again.events()] == before
    assert len(list(rtrain.resume(run.path, [wider, KEY]).events())) > len(before)


def test_a_loop_that_was_over_says_that_it_trained_nothing(fit):
    run = fit()
    before = len(list(run.events()))
    with pytest.warns(UserWarning, match="nothing was trained"):
        again = rtrain.resume(run.path, [KEY])
    assert len(list(again.events())) == before


def test_a_loop_that_reports_nothing_is_told_how_to(fit, tmp_path, capsys):
    assert command(["fit", str(tmp_path / "loop.yaml"), "trainer.train_loop_config.num_reports=0", KEY]) == 0
    assert "ray.train.report" in capsys.readouterr().err


def test_the_config_of_a_run_is_trained_again_where_nothing_marks_a_project(fit, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").unlink()
    run = fit()
    monkeypatch.chdir("/")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(tmp_path)])
    again = rtrain.fit(str(run.path / "config.yaml"), [KEY])
    assert again.manifest.project_root == run.manifest.project_root == str(tmp_path)


def test_a_loop_without_a_monitor_has_no_best(fit):
    run = fit()
    assert run.manifest.best is None
    assert run.best_checkpoint.name == "report-000005"


def test_a_new_run_begins_with_the_checkpoint_of_another_one(fit):
    first = fit()
    for place in (first.path, first.checkpoints[0]):
        run = fit(f"run.init_from={place}", "trainer.train_loop_config.num_reports=7")
        numbers = [event.metrics["number"] for event in run.events()]
        assert numbers == ([5, 6] if place == first.path else [4, 5, 6])
        assert next(run.events()).step == 1
        assert run.manifest.parent_run.startswith(str(place))


def test_a_run_that_resumes_goes_on_from_its_own_checkpoint(fit, tmp_path):
    first = fit("trainer.train_loop_config.num_reports=2")
    with pytest.raises(TrainingError, match="no luck"):
        fit(f"run.init_from={first.path}", "trainer.train_loop_config.fails_after=3")
    run = rtrain.resume(newest(tmp_path).path, ["trainer.train_loop_config.fails_after=0", KEY])
    assert [event.metrics["number"] for event in run.events()] == [2, 3, 4]


def test_no_place_to_begin_with_is_refused_before_anything_starts(fit, tmp_path):
    with pytest.raises(ConfigError, match=r"run\.init_from: .*nowhere does not exist"):
        fit(f"run.init_from={tmp_path}/nowhere")
    assert not (tmp_path / "runs").exists()


def test_a_declared_model_does_not_begin_with_a_checkpoint_of_a_loop(fit, tmp_path):
    run = fit()
    with pytest.raises(ConfigError, match=r"reported by seeded_loops:draws.*can't read its files"):
        rtrain.fit("mlp", [f"run.init_from={run.path}", "num_workers=0", f"run.root_dir={tmp_path}/others"])


def test_a_checkpoint_of_a_loop_says_what_wrote_it(fit):
    about = read_about(fit().best_checkpoint)
    assert about.trainer["train_loop"] == "seeded_loops:draws"
    assert about.trainer["train_loop_config"]["api_key"] == "***"
    assert wrote_files(fit().best_checkpoint)


def test_a_checkpoint_of_an_older_version_is_told(fit):
    folder = fit().best_checkpoint
    (folder / "about.json").unlink()
    with pytest.raises(CheckpointError, match="older version"):
        rtrain.evaluate(folder)


def test_a_shard_that_does_not_exist_names_those_that_do(fit):
    with pytest.raises(TrainingError, match="train, test"):
        fit("trainer.train_loop=seeded_loops:asks_for_validation", "+dataset=digits", "dataset.split.val=null")


def test_without_a_metric_that_decides_the_end_of_a_run_shows_the_last_values(fit):
    from rtrain.run_lines import end_lines

    run = fit()
    shown = next(line for line in end_lines(run.path, run.manifest) if line.startswith("last "))
    assert f"number {4}" in shown
    run = fit("run.checkpoint.best.monitor=number", "run.checkpoint.best.mode=min")
    assert any(line.startswith("best        number ") for line in end_lines(run.path, run.manifest))


def test_a_function_of_ray_tune_reports_and_goes_on_from_its_checkpoint(fit):
    words = ("trainer.train_loop=seeded_loops:of_tune", KEY)
    with pytest.raises(TrainingError, match="no luck") as caught:
        fit(*words, "trainer.train_loop_config.fails_after=2")
    run = rtrain.resume(caught.value.run_dir, ["trainer.train_loop_config.fails_after=0", KEY])
    assert [event.metrics["number"] for event in run.events()] == [0, 1, 2, 3, 4]
    assert run.best_checkpoint is not None
