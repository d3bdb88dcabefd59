"""A function of the user's validates the checkpoints that a loop reports with ``validation``."""

import pytest
from ray.train import CheckpointUploadMode, ReportedCheckpointStatus, ValidationTaskConfig

import rtrain
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.checkpoints import all_checkpoints, read_record

LOOPS = """
import random
import tempfile
import time
from pathlib import Path

import ray.train
import ray.train.collective
from ray.train import Checkpoint, CheckpointUploadMode, ValidationTaskConfig


def loop(config):
    for number in range(3):
        folder = tempfile.mkdtemp()
        Path(folder, "number").write_text(str(number))
        ray.train.report(
            {"loss": -number},
            checkpoint=Checkpoint.from_directory(folder),
            checkpoint_upload_mode=CheckpointUploadMode[config.get("mode", "SYNC")],
            delete_local_checkpoint_after_upload=True,
            validation=ValidationTaskConfig(**config["task"]) if "task" in config else True,
        )
    reported = ray.train.get_all_reported_checkpoints()
    names = " ".join(one.status.name for one in reported)
    ray.train.report({"drawn": random.random(), "statuses": names})


def validate(checkpoint, scale=1, fails=False, seconds=0):
    number = int(Path(checkpoint.path, "number").read_text())
    random.random()
    time.sleep(seconds)
    if fails:
        raise ValueError("a file is missing")
    return {"val": {"score": abs(number - 1) * scale}, "note": f"of {number}"}


def together(config):
    context = ray.train.get_context()
    rank = context.get_world_rank()
    for number in range(2):
        name = ray.train.collective.broadcast_from_rank_zero(f"own-{number}" if rank == 0 else None)
        folder = Path(context.get_storage().build_checkpoint_path_from_name(name))
        folder.mkdir(exist_ok=True)
        (folder / f"part-{rank}").write_text("x")
        (folder / "number").write_text(str(number))
        ray.train.report(
            {"loss": -number},
            checkpoint=Checkpoint.from_directory(folder),
            checkpoint_upload_mode=CheckpointUploadMode.NO_UPLOAD,
            validation=True,
        )


def returns_nothing(checkpoint):
    pass


def exits(checkpoint):
    raise SystemExit(4)


def is_interrupted(checkpoint, scale=1):
    if not Path(checkpoint.path).parents[1].joinpath("again").exists():
        Path(checkpoint.path).parents[1].joinpath("again").touch()
        raise KeyboardInterrupt
    return validate(checkpoint, scale)
"""


@pytest.fixture
def fit(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "validated_loops.py").write_text(LOOPS)

    def fit(*words, function="validate"):
        (tmp_path / "loop.yaml").write_text(
            "trainer:\n  type: torch\n  train_loop: validated_loops:loop\n"
            f"  validation_config: {{function: 'validated_loops:{function}'}}\n"
            "run: {checkpoint: {keep: 4}}\n"
        )
        return rtrain.fit(str(tmp_path / "loop.yaml"), ["num_workers=0", f"run.root_dir={tmp_path}/runs", *words])

    return fit


def scores(run):
    return [read_record(folder)["metrics"].get("val/score") for folder in all_checkpoints(run.path)]


def statuses(run):
    return {ReportedCheckpointStatus(read_record(folder)["validation"]).name for folder in all_checkpoints(run.path)}


@pytest.mark.parametrize("mode", sorted(CheckpointUploadMode.__members__.keys() - {"NO_UPLOAD"}))
def test_what_it_finds_belongs_to_the_checkpoint_and_is_an_event(fit, mode):
    best = ("run.checkpoint.best.monitor=val/score", "run.checkpoint.best.mode=min")
    run = fit(f"+trainer.train_loop_config.mode={mode}", *best)
    assert scores(run) == [1, 0, 1]
    assert statuses(run) == {"VALIDATED"}
    assert [event.metrics["val/score"] for event in run.events() if "val/score" in event.metrics] == [1, 0, 1]
    assert run.manifest.best["value"] == 0
    assert run.manifest.best_checkpoint == "checkpoints/report-000002"
    assert [one["metrics"]["val/score"] for one in run.manifest.checkpoints] == [1, 0, 1]


def test_the_loop_sees_what_became_of_its_checkpoints_and_draws_its_own_numbers(fit):
    validated = fit()
    assert list(validated.events())[-1].values["statuses"] == "VALIDATED VALIDATED VALIDATED"
    failed = fit("trainer.validation_config.arguments.fails=true")
    assert failed.metrics["drawn"] == validated.metrics["drawn"]


def test_arguments_are_those_of_the_config_with_those_of_the_report_on_top(fit):
    assert scores(fit("trainer.validation_config.arguments.scale=2")) == [2, 0, 2]
    task = "+trainer.train_loop_config.task={fn_kwargs: {scale: 3}}"
    assert scores(fit("trainer.validation_config.arguments.scale=2", task)) == [3, 0, 3]


@pytest.mark.parametrize(
    ("words", "function", "status"),
    [
        (("trainer.validation_config.arguments.fails=true",), "validate", "VALIDATION_FAILED"),
        ((), "returns_nothing", "VALIDATION_FAILED"),
        ((), "exits", "VALIDATION_FAILED"),
        (("trainer.validation_config.timeout_seconds=60",), "exits", "VALIDATION_FAILED"),
        (
            ("trainer.validation_config.timeout_seconds=0.01", "trainer.validation_config.arguments.seconds=1"),
            "validate",
            "VALIDATION_TIMEOUT",
        ),
        (
            ("+trainer.train_loop_config.task={fn_kwargs: {seconds: 1}, timeout_s: 0.01}",),
            "validate",
            "VALIDATION_TIMEOUT",
        ),
    ],
)
def test_one_that_fails_is_no_end_of_the_loop(fit, words, function, status):
    run = fit(*words, function=function)
    assert run.status == "succeeded"
    assert statuses(run) == {status}
    assert scores(run) == [None] * 3


def test_a_goal_may_be_one_of_its_metrics(fit):
    run = fit("run.stop.bounds={val/score: {min: 0.5}}")
    assert "val/score left its bounds with 0" in run.manifest.exit_reason
    assert len(all_checkpoints(run.path)) == 3


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("trainer.validation_config.function=validated_loops:validat",), "validat"),
        (("trainer.validation_config.arguments.scael=2",), "scael"),
    ],
)
def test_mistakes_are_named_before_anything_starts(fit, tmp_path, words, problem):
    with pytest.raises(ConfigError, match=problem):
        fit(*words)
    assert not (tmp_path / "runs").exists()


def test_a_report_that_asks_for_it_without_a_function_is_refused(fit):
    with pytest.raises(TrainingError, match="no validation function") as caught:
        fit("trainer.validation_config=null")
    assert "trainer.validation_config.function" in caught.value.hint


@pytest.mark.parametrize("given", ["{scale: 3}", "null"])
def test_one_that_was_interrupted_is_repeated_when_the_run_resumes(fit, tmp_path, given):
    task = f"+trainer.train_loop_config.task={{fn_kwargs: {given}}}"
    with pytest.raises(TrainingError, match="KeyboardInterrupt"):
        fit(task, function="is_interrupted")
    (run_dir,) = (tmp_path / "runs/loop").iterdir()
    (first,) = all_checkpoints(run_dir)
    assert read_record(first)["validation"] == "PENDING_VALIDATION"
    with pytest.warns(UserWarning, match="was interrupted and is repeated"):
        run = rtrain.resume(run_dir)
    assert read_record(first)["metrics"]["val/score"] == (3 if given != "null" else 1)
    assert statuses(run) == {"VALIDATED"}


def test_one_that_nothing_can_repeat_has_failed(fit, tmp_path):
    with pytest.raises(TrainingError, match="KeyboardInterrupt"):
        fit(function="is_interrupted")
    (run_dir,) = (tmp_path / "runs/loop").iterdir()
    with pytest.warns(UserWarning, match="not repeated"), pytest.raises(TrainingError, match="no validation function"):
        rtrain.resume(run_dir, ["trainer.validation_config=null"])
    assert read_record(all_checkpoints(run_dir)[0])["validation"] == "VALIDATION_FAILED"


def test_a_task_has_rays_defaults():
    assert ValidationTaskConfig().timeout_s is None


@pytest.mark.slow
def test_workers_write_one_checkpoint_in_place_and_the_first_of_them_validates_it(fit):
    run = fit("num_workers=2", "trainer.train_loop=validated_loops:together")
    assert [folder.name for folder in all_checkpoints(run.path)] == ["own-0", "own-1"]
    files = read_record(all_checkpoints(run.path)[1])["files"]
    assert set(files) == {"about.json", "events.jsonl", "number", "part-0", "part-1"}
    assert (scores(run), statuses(run)) == ([1, 0], {"VALIDATED"})
