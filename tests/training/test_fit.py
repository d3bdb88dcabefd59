"""Whole runs in one process: how they end, and what they leave behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rtrain
from rtrain.errors import TrainingError
from rtrain.process.interrupts import StopRequest, stop_on_signals
from rtrain.runs.checkpoints import read_record
from rtrain.runs.run import Run

RTRAIN = Path(sys.executable).with_name("rtrain")

LOOPS = """
import asyncio
import builtins

import ray.train


def takes_config(config):
    for step in range(config["steps"]):
        ray.train.report({"loss": 1.0 / (step + 1), "step": step})


def fails():
    print("about to fail")
    raise ValueError("no luck")


def says(config):
    raise ValueError("begin" + "x" * config["steps"] + "end")


class Own(BaseException):
    pass


def raises(config):
    known = {"Own": Own, "CancelledError": asyncio.CancelledError}
    name = config["steps"]
    raise known.get(name) or getattr(builtins, name)
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own_loops.py").write_text(LOOPS)
    return tmp_path


def fit_loop(project, loop, steps=3):
    text = f"trainer: {{type: torch, train_loop: 'own_loops:{loop}', train_loop_config: {{steps: {steps}}}}}\n"
    (project / "loop.yaml").write_text(text)
    return rtrain.fit(str(project / "loop.yaml"), ["num_workers=0", f"run.root_dir={project}/runs"])


def test_rays_own_example_runs_without_an_edit(tmp_path):
    (tmp_path / "linear.yaml").write_text(
        "trainer: {type: torch, train_loop: 'ray.train.examples.pytorch.torch_linear_example:train_func'}\n"
    )
    run = rtrain.fit(str(tmp_path / "linear.yaml"), ["num_workers=0", f"run.root_dir={tmp_path}/runs"])
    assert run.status == "succeeded"
    assert len(list(run.events())) == 3
    assert (run.best_checkpoint / "model.pt").exists()
    assert set(read_record(run.best_checkpoint)["files"]) == {"model.pt", "about.json"}


def test_a_loop_with_a_config_gets_it(project):
    run = fit_loop(project, "takes_config")
    assert [event.metrics["loss"] for event in run.events()] == [1, 1 / 2, 1 / 3]


def test_a_failed_run_keeps_its_error(project):
    with pytest.raises(TrainingError, match="ValueError: no luck") as caught:
        fit_loop(project, "fails")
    assert isinstance(caught.value.cause, ValueError)
    (path,) = (project / "runs" / "loop").iterdir()
    manifest = Run.load(path).manifest
    assert (manifest.status, manifest.exit_reason) == ("failed", "ValueError: no luck")
    assert manifest.error["type"] == "ValueError"
    assert "own_loops.py" in manifest.error["traceback"]
    assert (path / "logs" / "worker-0.log").read_text().startswith("about to fail")


@pytest.mark.parametrize("name", ["SystemExit", "CancelledError", "GeneratorExit", "KeyboardInterrupt", "Own"])
def test_a_loop_that_raises_what_is_no_exception_has_failed(project, name):
    with pytest.raises(TrainingError, match=name):
        fit_loop(project, "raises", name)
    (path,) = (project / "runs" / "loop").iterdir()
    manifest = Run.load(path).manifest
    assert (manifest.status, manifest.error["type"]) == ("failed", name)
    assert "own_loops.py" in manifest.error["traceback"]


def test_what_an_error_says_is_whole_in_the_log_alone(project):
    with pytest.raises(TrainingError, match="characters left out") as caught:
        fit_loop(project, "says", 5_000_000)
    (path,) = (project / "runs" / "loop").iterdir()
    assert len(str(caught.value)) < 3000
    assert (path / "manifest.json").stat().st_size < 100_000
    assert (path / "logs" / "worker-0.log").stat().st_size > 5_000_000
    message = Run.load(path).manifest.error["message"]
    assert message.startswith("begin")
    assert message.endswith("end")


@pytest.fixture
def training(start, tmp_path):
    """A process that trains, and the run directory."""
    command = [RTRAIN, "fit", "mlp", "num_workers=0", "trainer.max_epochs=100000", "run.root_dir=runs"]
    process = start(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        paths = list(tmp_path.glob("runs/*/*/events.jsonl"))
        if paths and Run.load(paths[0].parent).manifest.best_checkpoint is not None:
            return process, paths[0].parent
        time.sleep(0.05)
    process.kill()
    pytest.fail(f"no checkpoint: {process.communicate()[0]}")


@pytest.mark.slow
def test_a_killed_run_keeps_a_readable_manifest_and_whole_checkpoints(training):
    process, path = training
    process.kill()
    process.communicate()
    run = Run.load(path)
    assert run.status == "killed"
    assert run.manifest.best_checkpoint is not None
    for folder in (path / "checkpoints").glob("[!.]*"):
        assert read_record(folder)["name"] == folder.name


def test_the_second_signal_ends_at_once():
    request = StopRequest()
    request.receive(signal.SIGINT)
    assert request.reason == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        request.receive(signal.SIGINT)


def test_signal_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as request:
        signal.raise_signal(signal.SIGTERM)
        assert request.reason == "preempted"
    assert signal.getsignal(signal.SIGTERM) is before
