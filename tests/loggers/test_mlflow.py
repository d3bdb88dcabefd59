"""What MLflow is told beside metrics: parameters that a resume changed, tags, versions of a model, sweeps."""

from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from pydantic import TypeAdapter, ValidationError

from rtrain.loggers.base import Delivered, LoggedRun, Outcome, SystemSample
from rtrain.loggers.mlflow import Conf, Logger
from rtrain.runs.events import Event

BEGAN, ENDED = "2026-01-01T00:00:00.000+00:00", "2026-01-01T00:01:00.000+00:00"


@pytest.fixture
def client(mlflow_uri):
    return MlflowClient(mlflow_uri)


@pytest.fixture
def logger_of(mlflow_uri, request):
    """Make a logger with an experiment of the test's own."""
    return lambda **keys: Logger(Conf(tracking_uri=mlflow_uri, experiment=request.node.name, **keys))


@pytest.fixture
def run(tmp_path):
    parameters = {"trainer.type": "torch", "trainer.lr": 0.1}
    return LoggedRun(
        id="a-run", name="runs", folder=tmp_path, started_at=BEGAN, parameters=parameters, tags=("baseline",)
    )


def event(step):
    return Event.at(float(step), step=step, epoch=1, metrics={"loss": 1 / step})


def outcome(checkpoint=None):
    folders = {} if checkpoint is None else {"best": checkpoint}
    return Outcome(status="succeeded", reason="trained to the end", ended_at=ENDED, checkpoints=folders)


def steps(client, run_id):
    return [one.step for one in client.get_metric_history(run_id, "loss")]


def test_a_run_has_the_times_and_tags_of_the_run_directory(client, logger_of, run):
    logger = logger_of(tags={"team": "vision"})
    found = logger.open(run, Delivered())["run_id"]
    logger.end(outcome())
    made = client.get_run(found)
    assert (made.info.start_time, made.info.end_time) == (1767225600000, 1767225660000)
    assert {"team": "vision", "baseline": "true"}.items() <= made.data.tags.items()


def test_a_resume_that_changed_the_config_is_one_child_run_however_often_it_is_opened(client, logger_of, run):
    first = logger_of()
    ids = first.open(run, Delivered())
    first.log([event(1)])
    changed = replace(run, parameters={**run.parameters, "trainer.lr": 0.2}, changed={"trainer.lr": 0.2})
    for step in (2, 3):
        again = logger_of()
        assert again.open(changed, Delivered(events=1, step=1, ids=ids)) == ids
        again.log([event(step)])
    again.end(outcome())
    found = client.search_runs([ids["experiment_id"]])
    (child,) = (one for one in found if one.data.tags.get("mlflow.parentRunId") == ids["run_id"])
    assert len(found) == 2
    assert (client.get_run(ids["run_id"]).data.params["trainer.lr"], child.data.params["trainer.lr"]) == ("0.1", "0.2")
    assert client.get_run(ids["run_id"]).data.tags["changed.trainer.lr"] == "0.2"
    assert (steps(client, ids["run_id"]), steps(client, child.info.run_id)) == ([1, 2, 3], [2, 3])
    assert {one.info.status for one in client.search_runs([ids["experiment_id"]])} == {"FINISHED"}


def test_a_run_that_was_sent_elsewhere_in_between_is_found_again(logger_of, run):
    ids = logger_of().open(run, Delivered())
    elsewhere = {"run_id": "0" * 32, "experiment_id": "of another server"}
    assert logger_of().open(run, Delivered(events=1, step=1, ids=elsewhere)) == ids


def test_a_change_that_the_run_began_with_is_none(client, logger_of, run):
    changed = replace(run, parameters={**run.parameters, "trainer.lr": 0.2}, changed={"trainer.lr": 0.2})
    ids = logger_of().open(changed, Delivered())  # it was resumed before the tracker was named
    logger_of().open(changed, Delivered(ids=ids))
    assert len(client.search_runs([ids["experiment_id"]])) == 1
    assert not [name for name in client.get_run(ids["run_id"]).data.tags if name.startswith("changed.")]


def test_a_checkpoint_becomes_an_artifact_and_a_version_of_a_model(client, logger_of, run, tmp_path):
    (tmp_path / "epoch-1").mkdir()
    (tmp_path / "epoch-1" / "model.txt").write_text("weights")
    for expected in ([1], [1, 2]):  # a second time when the run is extended
        logger = logger_of(checkpoints="best", register="digits")
        ids = logger.open(run, Delivered())
        logger.end(outcome(tmp_path / "epoch-1"))
        versions = client.search_model_versions("name = 'digits'")
        assert sorted(int(one.version) for one in versions) == expected
        files = client.list_artifacts(ids["run_id"], "checkpoints/best")
        assert [Path(one.path).name for one in files] == ["model.txt"]
    assert {one.source for one in versions if one.run_id == ids["run_id"]} == {
        f"runs:/{ids['run_id']}/checkpoints/best"
    }


def test_a_version_of_a_model_needs_a_checkpoint():
    with pytest.raises(ValidationError, match="checkpoints"):
        TypeAdapter(Conf).validate_python({"register": "digits"})


def test_trials_are_children_of_their_sweep_which_is_over_when_they_are(client, logger_of, run, tmp_path):
    trials = [replace(run, id=f"trial_{number}", sweep=tmp_path / "digits-sweep-1") for number in range(3)]
    loggers = [logger_of() for _ in trials]
    ids = [logger.open(trial, Delivered()) for logger, trial in zip(loggers, trials, strict=True)]
    (sweep,) = {client.get_run(one["run_id"]).data.tags["mlflow.parentRunId"] for one in ids}
    assert client.get_run(sweep).info.run_name == "digits-sweep-1"
    for logger in loggers:
        logger.end(outcome())
    assert client.get_run(sweep).info.status == "FINISHED"


def test_system_metrics_are_beside_those_of_the_run(client, logger_of, run):
    logger = logger_of()
    found = logger.open(run, Delivered())["run_id"]
    logger.log_system(SystemSample(seconds=7, values={"system/cpu_utilization_percentage": 12.5}))
    (point,) = client.get_metric_history(found, "system/cpu_utilization_percentage")
    assert (point.step, point.value) == (7, 12.5)


@pytest.mark.parametrize("folder", ["mlruns", "./mlruns", "/data/mlruns", "file:///data/mlruns"])
def test_a_folder_as_a_server_is_refused_before_training_unless_mlflow_takes_it(monkeypatch, folder):
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    with pytest.raises(ValueError, match="a folder, which MLflow refuses"):
        Conf(tracking_uri=folder)
    with pytest.raises(MlflowException):
        MlflowClient(folder).search_experiments()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    assert Conf(tracking_uri=folder).tracking_uri == folder


@pytest.mark.parametrize(
    "server", [None, "http://a:5000", "sqlite:///mlflow.db", "databricks", "databricks://me", "uc"]
)
def test_a_server_or_a_database_is_taken(server):
    assert Conf(tracking_uri=server).tracking_uri == server
