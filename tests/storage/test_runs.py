"""Runs with ``run.storage``: a real training, whose copy is enough to go on elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from s3_faults import Fault
from small_run import until

import rtrain
from rtrain.cli import app
from rtrain.config.session import Session
from rtrain.errors import ConfigError
from rtrain.runs.observer import SilentObserver
from rtrain.runs.verify import verify_run
from rtrain.schemas import schemas
from rtrain.storage.fetching import fetch_run, stored_run
from rtrain.training.fit import fit_session

TRAINING = [
    "dataset=digits",
    "trainer.num_boost_round=6",
    "run.checkpoint.every_steps=2",
    "num_workers=0",
    "run.name=boost",
]


@pytest.fixture
def words(broken, tmp_path):
    return [*TRAINING, f"run.root_dir={tmp_path}/runs", "run.storage=s3://box/all"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What comes of the run when nothing interrupts it."""
    return rtrain.fit("xgboost", [*TRAINING, f"run.root_dir={tmp_path_factory.mktemp('whole')}"])


def test_a_run_and_its_copy(words, tmp_path):
    run = rtrain.fit("xgboost", words)
    assert run.manifest.storage == {"url": f"s3://box/all/boost/{run.manifest.run_id}", "complete": True}
    fetch_run(stored_run(run.manifest.storage["url"]), tmp_path / "again", print)
    assert verify_run(tmp_path / "again") == []
    again = rtrain.Run.load(tmp_path / "again")
    assert again.status == "succeeded"
    assert again.metrics == run.metrics
    assert [one.name for one in again.checkpoints] == [run.checkpoints[-1].name]


def test_a_store_that_fails_in_the_middle_costs_tries_and_not_the_run(words, broken):
    broken.faults.append(Fault(status=503, times=20, what="checkpoints/"))
    run = rtrain.fit("xgboost", words)
    assert run.status == "succeeded"
    assert run.manifest.storage["complete"]


def test_a_copy_that_is_not_complete_is_told_loudly(words, broken, tmp_path, capsys):
    broken.faults.append(Fault(status=403, what="PUT .*checkpoint.json"))
    assert app.run(["fit", "xgboost", *words, "run.storage_timeout_seconds=1"]) == 1
    (path,) = (tmp_path / "runs" / "boost").iterdir()
    run = rtrain.Run.load(path)
    assert run.status == "succeeded"
    assert run.manifest.exit_reason == "trained to the end; its copy is NOT COMPLETE"
    assert run.manifest.storage["missing"] == [one.name for one in run.checkpoints]
    assert "ACCESS_DENIED" in run.manifest.storage["error"]
    assert verify_run(run.path) == []
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("next").split()
    assert command == ["rtrain", "runs", "upload", str(path)]
    broken.faults.clear()
    assert app.run(command[1:]) == 0
    assert rtrain.Run.load(path).manifest.storage["complete"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://nobox/runs", r"run\.storage: s3://nobox/runs does not exist"),
        ("runs/elsewhere", r"run\.storage[\s\S]* must be a URL, such as s3://bucket/runs"),
        ("https://host/runs", r"run\.storage[\s\S]* not of a web page"),
    ],
)
def test_nothing_is_trained_without_the_store(words, tmp_path, url, message):
    with pytest.raises(ConfigError, match=message):
        rtrain.fit("xgboost", [*words, f"run.storage={url}"])
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_key_in_the_url_is_written_nowhere(words, s3, broken, tmp_path, monkeypatch):
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    url = f"run.storage='s3://{s3.key_id}:{quote(s3.secret, safe='')}@box/all'"
    run = rtrain.fit("xgboost", [*words, url])
    assert run.manifest.storage["complete"]
    assert run.manifest.config["run"]["storage"] == "s3://box/all"
    written = b"".join(file.read_bytes() for file in (tmp_path / "runs").rglob("*") if file.is_file())
    written += b"".join(s3.client.get_object(Bucket="box", Key=name)["Body"].read() for name in s3.names("box"))
    for secret in (s3.key_id, s3.secret, quote(s3.secret, safe="")):
        assert secret.encode() not in written


class Terminated(SilentObserver):
    """Sends SIGTERM once a step is reported, as a machine that is taken away does."""

    def __init__(self, step):
        self.step = step

    def event(self, event):
        if event.step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


def preempted(words, step):
    with Session("xgboost", words, schemas()) as session:
        run = fit_session(session, Terminated(step))
    assert run.status == "preempted"
    return run


def same_model(run, whole):
    name = "model.ubj"
    return (run.checkpoints[-1] / name).read_bytes() == (whole.checkpoints[-1] / name).read_bytes()


def test_a_new_machine_goes_on_by_the_same_command(words, whole, tmp_path):
    first = preempted(words, 3)
    shutil.rmtree(tmp_path / "runs")
    run = rtrain.fit("xgboost", [*words, "run.resume=auto"])
    assert run.path == first.path
    assert run.manifest.resumes[0]["status_before"] == "preempted"
    assert run.manifest.attempts[-1]["from_step"] > 0
    assert run.metrics == whole.metrics
    assert same_model(run, whole)
    steps = [event.step for event in run.events()]
    assert steps == [event.step for event in whole.events()]
    assert run.manifest.storage["complete"]
    assert stored_run(run.manifest.storage["url"]).manifest["status"] == "succeeded"


def test_a_run_directory_that_is_behind_the_store_is_set_aside(words, whole, tmp_path):
    first = preempted(words, 3)
    older = tmp_path / "older"
    shutil.copytree(first.path, older)
    shutil.rmtree(tmp_path / "runs")
    second = preempted([*words, "run.resume=must"], 5)
    shutil.rmtree(second.path)
    shutil.copytree(older, first.path)
    run = rtrain.fit("xgboost", [*words, "run.resume=auto"])
    assert run.path == first.path
    assert len(run.manifest.resumes) == 2
    assert same_model(run, whole)
    assert [path.name[:6] for path in run.path.parent.iterdir() if path.name.startswith(".")] == [".older"]


@pytest.mark.slow
def test_a_run_directory_that_is_named_catches_up_with_the_store(words, whole, tmp_path):
    first = preempted(words, 3)
    shutil.copytree(first.path, tmp_path / "older")
    preempted([*words, "run.resume=must"], 5)
    shutil.rmtree(first.path)
    shutil.copytree(tmp_path / "older", first.path)
    run = rtrain.resume(first.path)
    assert len(run.manifest.resumes) == 2
    assert same_model(run, whole)


def test_a_run_is_resumed_by_its_url(words, whole, tmp_path):
    first = preempted(words, 3)
    shutil.rmtree(tmp_path / "runs")
    run = rtrain.resume(first.manifest.storage["url"])
    assert run.path == first.path
    assert same_model(run, whole)
    with pytest.raises(ConfigError, match="RUN: s3://box/all/boost/none does not exist"):
        rtrain.resume("s3://box/all/boost/none")


def test_nothing_to_go_on_with_is_told(words):
    with pytest.raises(ConfigError, match=r"run\.resume=must is set, but there is no unfinished run"):
        rtrain.fit("xgboost", [*words, "run.resume=must"])


MAIN = "import sys; from rtrain.cli.app import run; sys.exit(run(sys.argv[1:]))"


def command(*words):
    return [sys.executable, "-c", MAIN, *words]


def finished(folder, *words):
    """Run a command to its end, in a folder."""
    return subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_process_that_is_killed_with_its_machine_goes_on_elsewhere(start, words, whole, s3, broken, tmp_path):
    broken.faults.append(Fault(wait_seconds=1, what="PUT .*manifest"))
    process = start(command("fit", "xgboost", *words, "trainer.num_boost_round=300"), cwd=tmp_path)
    until(lambda: [name for name in s3.names("box") if name.endswith("checkpoint.json")], 60)
    process.kill()
    process.wait()
    shutil.rmtree(tmp_path / "runs")
    broken.faults.clear()
    done = finished(tmp_path, "fit", "xgboost", *words, "trainer.num_boost_round=300", "run.resume=must")
    assert done.returncode == 0, done.stderr
    assert "checking whether another machine uses" in done.stderr
    (path,) = (tmp_path / "runs").glob("*/*/manifest.json")
    run = rtrain.Run.load(path.parent)
    assert run.manifest.resumes[0]["status_before"] == "running"
    assert run.manifest.attempts[-1]["from_step"] > 0


@pytest.mark.slow
def test_a_store_that_falls_silent_does_not_keep_the_process(words, broken, tmp_path):
    broken.faults.append(Fault(wait_seconds=45, what="checkpoints/"))
    began = time.monotonic()
    done = finished(tmp_path, "fit", "xgboost", *words, "run.storage_timeout_seconds=2")
    assert done.returncode == 1, done.stderr
    assert "lacks 2 checkpoints (" in done.stderr
    # A request that waits for its answer can't be left before it is given up, half a minute later.
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_workers_on_ray_write_what_the_driver_copies(words, tmp_path):
    few = ["dataset=digits", "trainer.max_epochs=2", "run.name=mlp", *words[len(TRAINING) :], "num_workers=2"]
    done = finished(tmp_path, "fit", "mlp", *few)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "runs").glob("*/*/manifest.json")
    run = rtrain.Run.load(path.parent)
    assert run.manifest.storage["complete"]
    fetch_run(stored_run(run.manifest.storage["url"]), tmp_path / "again", print)
    assert verify_run(tmp_path / "again") == []
    assert (tmp_path / "again" / "logs" / "worker-1.log").exists() == (run.path / "logs" / "worker-1.log").exists()
