"""Runs that are killed and resumed four times: what a real MLflow server, TensorBoard and W&B hold of them."""

import json
import random
import signal
from pathlib import Path

import pytest
from harness import WORDS, AtChange, Child, killed, recovered, run_dirs, until_trained
from mlflow_server import MlflowServer
from tracker_readers import of_events, of_mlflow, of_tensorboard, of_wandb

from rtrain.runs.run import Run
from rtrain.sweeps.record.sweep_record import read_sweep
from rtrain.tracking.position import FOLDER

KILLS = 4
CLOCK = "train/rows_per_second"
"""Differs where a step is done again; trackers keep what they got first."""
LOOP = """
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from ray import train


def loop(config):
    begin, checkpoint = 0, train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            begin = json.loads((Path(folder) / "state.json").read_text())["step"]
    for step in range(begin + 1, config["steps"] + 1):
        with TemporaryDirectory() as folder:
            (Path(folder) / "state.json").write_text(json.dumps({"step": step}))
            report = {"step": step, "loss": 1 / step, "worst": float("nan"), "said": "x" * 20}
            train.report(report, checkpoint=train.Checkpoint.from_directory(folder))
"""
KINDS = {
    "declared": ("mlp", *WORDS),
    "tree": ("xgboost", "num_workers=0", "trainer.num_boost_round=120", "run.checkpoint.every_steps=4"),
    "loop": ("loop.yaml", "num_workers=0"),
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with MlflowServer(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WANDB_SERVICE", raising=False)
    Path("loops.py").write_text(LOOP)
    trainer = "{type: torch, train_loop: 'loops:loop', train_loop_config: {steps: 40}}"
    Path("loop.yaml").write_text(f"trainer: {trainer}\nrun: {{checkpoint: {{keep: 2}}}}\n")


def trackers(server):
    return (
        f"run.loggers.mlflow.tracking_uri={server.url}",
        "run.loggers.wandb.mode=offline",
        "run.loggers=tensorboard",
    )


def assert_tracked(run_dir, server):
    """Check that each tracker holds what the events say, each step once."""
    expected = of_events(Run.load(run_dir))
    assert expected
    ids = json.loads((run_dir / FOLDER / "mlflow.json").read_text())["ids"]
    found = {"mlflow": of_mlflow(server.url, ids["run_id"]), "tensorboard": of_tensorboard(run_dir / "tensorboard")}
    found["wandb"] = of_wandb(run_dir / "wandb")
    for tracker, metrics in found.items():
        assert metrics.keys() == expected.keys(), tracker
        assert metrics.get(CLOCK, {}).keys() == expected.get(CLOCK, {}).keys()
        for name, steps in ((name, steps) for name, steps in expected.items() if name != CLOCK):
            assert metrics[name] == pytest.approx(steps, rel=1e-6, nan_ok=True), f"{name} of {tracker}"


@pytest.mark.parametrize("kind", list(KINDS))
def test_trackers_hold_the_events_of_a_run_after_four_kills_and_resumes(kind, server, tmp_path):
    folder, what, rng = tmp_path / "runs", KINDS[kind], random.Random(kind)
    words = [*trackers(server), f"run.loggers.mlflow.experiment={kind}"]
    for _ in range(KILLS):
        at = AtChange(rng.randint(60, 160), killed)
        assert Child(folder, ["run.resume=auto", *words], at=at, what=what).wait() != 0, "it was over before"
    run_dir = recovered(folder, words, what=what)
    assert run_dirs(folder) == [run_dir]
    assert_tracked(run_dir, server)


def test_trackers_hold_the_events_of_a_sweep_after_four_kills(server, tmp_path):
    folder, rng = tmp_path / "runs", random.Random(1)
    what = ("mlp", *WORDS, "--multirun", "lr=0.1,0.01", *trackers(server), "run.loggers.mlflow.experiment=swept")
    for _ in range(KILLS):
        Child(folder, at=AtChange(rng.randint(200, 400), killed), what=what).wait()
    assert Child(folder, what=what).wait() == 0, Path(f"{folder}.log").read_text()[-3000:]
    (sweep,) = {path.parent for path in folder.glob("*/sweep.json")}
    for trial in read_sweep(sweep)["trials"]:
        assert_tracked(sweep / trial["name"], server)
    from mlflow import MlflowClient

    client = MlflowClient(server.url)
    runs = client.search_runs([client.get_experiment_by_name("swept").experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert [run.info.run_name for run in parents] == [sweep.name]
    assert {run.data.tags.get("mlflow.parentRunId", run.info.run_id) for run in runs} == {parents[0].info.run_id}
    assert {run.info.status for run in runs} == {"FINISHED"}


def test_a_server_that_goes_away_and_returns_lacks_nothing(tmp_path):
    folder = tmp_path / "runs"
    with MlflowServer(tmp_path) as server:
        words = [*trackers(server), "trainer.max_epochs=60", "+vars.password=hunter2-very-secret"]
        child = Child(folder, words)
        until_trained(folder, 100)
        server.stop()
        until_trained(folder, 400)
        server.start()
        assert child.wait() == 0
        (run_dir,) = run_dirs(folder)
        assert_tracked(run_dir, server)
        said = Path(f"{folder}.log").read_text()
        assert said.count("mlflow does not respond") == 1
        assert "LACKS" not in said
        stored = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(folder / "mlp")]
        assert not [path for path in stored if b"hunter2-very-secret" in path.read_bytes()]


def test_a_changed_resume_is_a_child_run_with_its_own_parameters(server, tmp_path):
    from mlflow import MlflowClient

    folder = tmp_path / "runs"
    words = [*trackers(server), "run.loggers.mlflow.experiment=changed"]
    child = Child(folder, words)
    until_trained(folder, 20)
    child.send(signal.SIGINT)
    child.wait()
    run_dir = recovered(folder, [*words, "trainer.max_epochs=5"])
    assert_tracked(run_dir, server)
    client = MlflowClient(server.url)
    parent_id = json.loads((run_dir / FOLDER / "mlflow.json").read_text())["ids"]["run_id"]
    runs = client.search_runs([client.get_experiment_by_name("changed").experiment_id])
    (child_run,) = (run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent_id)
    parent = client.get_run(parent_id)
    assert (parent.data.params["trainer.max_epochs"], child_run.data.params["trainer.max_epochs"]) == ("3", "5")
    assert parent.data.tags["changed.trainer.max_epochs"] == "5"
    steps = [one.step for one in client.get_metric_history(child_run.info.run_id, "val/loss")]
    assert steps
    assert steps == [step for step in of_events(Run.load(run_dir))["val/loss"] if step >= steps[0]]
