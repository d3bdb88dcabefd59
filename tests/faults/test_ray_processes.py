"""Processes of a run on two Ray workers are killed at random moments; it goes on by itself, or by ``rtrain resume``."""

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import (
    NUM_EPOCHS,
    STEPS_PER_EPOCH,
    WORDS,
    AtChange,
    Child,
    assert_like,
    full,
    read_only,
    run_dirs,
    status_of,
    until_trained,
)
from processes import alive, descendants, named, signal_all, until
from started_cluster import SERVERS, started_cluster

from rtrain.runs.run import Run

RTRAIN = str(Path(sys.executable).with_name("rtrain"))
TWO = [*WORDS, "num_workers=2", "run.failure.max_failures=3", "trainer.max_epochs=40", "run.checkpoint.every_steps=20"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A run on two workers that nothing happened to."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([RTRAIN, "fit", "mlp", *TWO, f"run.root_dir={folder}"], check=True, capture_output=True)
    return run_dirs(folder)[0]


class Training:
    """``rtrain fit`` on two workers, in a process of its own."""

    def __init__(self, folder, *more):
        self.folder, self.log = folder, folder.with_suffix(".log").open("w+")
        words = [RTRAIN, "fit", "mlp", *TWO, f"run.root_dir={folder}", *more]
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log, start_new_session=True)

    def wait(self):
        try:
            return self.process.wait(timeout=180)
        finally:
            if self.process.poll() is None:
                self.process.kill()

    def end(self):
        """Leave none of its processes behind, whatever became of them."""
        for pid in [self.process.pid, *self.started]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def output(self):
        return Path(self.log.name).read_text()

    def pid_of(self, what, rng):
        """Return the process to kill; note all of them, which a killed parent loses from sight."""
        self.started = descendants(self.process.pid)
        if what == "driver":
            return self.process.pid
        if what in ("worker", "rank 0"):
            rank = 0 if what == "rank 0" else rng.randint(0, 1)
            (run_dir,) = run_dirs(self.folder)
            return Run.load(run_dir).manifest.workers[str(rank)]["pid"]
        return named(self.process.pid, SERVERS[what])[0]


@pytest.fixture
def training(tmp_path):
    """A run that has just begun."""
    one = Training(tmp_path / "runs")
    one.started = []
    yield one
    one.end()


@pytest.mark.parametrize("what", ["worker", "rank 0"])
def test_a_killed_process_is_replaced(training, reference, what, seed):
    rng = random.Random(seed)
    until_trained(training.folder, rng.randint(2, 15 * STEPS_PER_EPOCH))
    os.kill(training.pid_of(what, rng), signal.SIGKILL)
    assert training.wait() == 0, Path(training.log.name).read_text()[-3000:]
    (run_dir,) = run_dirs(training.folder)
    assert_like(run_dir, reference)
    attempts = Run.load(run_dir).manifest.attempts
    assert len(attempts) == 2, "it was over before the kill"
    assert attempts[0]["ended_because"]["message"]


@pytest.mark.parametrize("what", ["raylet", "gcs", "driver"])
def test_what_can_not_be_replaced_leaves_a_run_that_goes_on(training, reference, what, seed):
    rng = random.Random(seed)
    until_trained(training.folder, rng.randint(2, 15 * STEPS_PER_EPOCH))
    os.kill(training.pid_of(what, rng), signal.SIGKILL)
    assert training.wait() == (-signal.SIGKILL if what == "driver" else 1)
    (run_dir,) = run_dirs(training.folder)
    if what == "driver":
        assert status_of(run_dir) == "running"
    else:
        assert status_of(run_dir) == "failed"
        assert Run.load(run_dir).manifest.attempts[-1]["ended_because"]["kind"] == "cluster lost"
        assert "the Ray cluster of this run was lost" in Path(training.log.name).read_text()
    assert until(lambda: not alive(training.started), seconds=20), "Ray's processes outlive the run"
    _assert_resumes(run_dir, reference)


@pytest.mark.parametrize("what", ["raylet", "gcs"])
def test_the_loss_of_a_cluster_that_was_joined_is_named_too(tmp_path, reference, what, seed):
    """Ray would end the driver without a message."""
    with started_cluster() as (address, pids):
        training = Training(tmp_path / "runs", f"cluster.address={address}")
        training.started = []
        try:
            until_trained(training.folder, random.Random(seed).randint(2, 15 * STEPS_PER_EPOCH))
            os.kill(pids[what], signal.SIGKILL)
            assert training.wait() == 1
            (run_dir,) = run_dirs(training.folder)
            assert status_of(run_dir) == "failed"
            assert Run.load(run_dir).manifest.attempts[-1]["ended_because"]["kind"] == "cluster lost"
            assert {"raylet": "(raylet) was lost", "gcs": "(gcs_server) was lost"}[what] in training.output()
        finally:
            training.end()
    _assert_resumes(run_dir, reference, "cluster.address=null")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize("reached", ["driver", "group", "all"])
def test_a_signal_that_reaches_more_than_the_driver_costs_nothing(training, reference, number, reached, seed):
    rng = random.Random(seed)
    until_trained(training.folder, rng.randint(2, 15 * STEPS_PER_EPOCH))
    training.started = descendants(training.process.pid)
    if reached == "group":
        os.killpg(training.process.pid, number)
        os.killpg(training.process.pid, number)  # as timeout does
    else:
        pids = [training.process.pid, *(training.started if reached == "all" else [])]
        signal_all(rng.sample(pids, len(pids)), number)
    assert training.wait() in (0, 143), Path(training.log.name).read_text()[-3000:]
    assert alive(training.started) == []
    (run_dir,) = run_dirs(training.folder)
    run = Run.load(run_dir)
    assert run.status in ("preempted", "succeeded")  # it may have been over already
    assert run.manifest.checkpoints[-1]["step"] >= max(event.step for event in run.events())
    _assert_resumes(run_dir, reference)


@pytest.mark.parametrize("fault", [full, read_only])
def test_a_driver_that_can_not_write_ends_the_run_with_the_cause(tmp_path, reference, fault, seed):
    folder = tmp_path / "runs"
    at = AtChange(random.Random(seed).randint(1, 60), fault, lasting=True)
    assert Child(folder, TWO, at).wait() == 1
    log = folder.with_suffix(".log").read_text()
    assert os.strerror({full: 28, read_only: 30}[fault]) in log, log
    for run_dir in run_dirs(folder):
        if status_of(run_dir) != "succeeded":
            _assert_resumes(run_dir, reference)


def _assert_resumes(run_dir, reference, *words):
    command = [RTRAIN, "resume", str(run_dir), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_like(run_dir, reference)


def test_the_reference_has_all_its_epochs(reference):
    assert Run.load(reference).manifest.epoch == 40 > NUM_EPOCHS
