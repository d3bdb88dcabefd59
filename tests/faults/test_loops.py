"""Train loops of one's own, killed at random moments: the same command brings them to the same end."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import AtChange, Child, killed, recovered, run_dirs, status_of, until_trained
from processes import descendants, named
from sweep_results import only_sweep

from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.runs.run import Run
from rtrain.runs.verify import verify_run
from rtrain.sweeps.record.sweep_record import read_sweep

RTRAIN = str(Path(sys.executable).with_name("rtrain"))
NUM_REPORTS = 12
LOOP = '''
import json
import pathlib
import tempfile
import time

import ray.train


def count(config):
    """Each number depends on all before it; a checkpoint has files of all ranks, in folders."""
    context, checkpoint = ray.train.get_context(), ray.train.get_checkpoint()
    state = {"number": 0, "value": config["begin"]}
    if checkpoint is not None:
        state = json.loads((pathlib.Path(checkpoint.path) / "state.json").read_text())
        assert (pathlib.Path(checkpoint.path) / "deep" / "inside").read_text() == str(state["number"])
    while state["number"] < config["num_reports"]:
        state = {"number": state["number"] + 1, "value": (state["value"] * 6364136223846793005 + 1) % 2**53}
        time.sleep(config["seconds"])
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "deep").mkdir()
            (place / f"rank-{context.get_world_rank()}").write_text("x" * 1000)
            if context.get_world_rank() == 0:
                (place / "state.json").write_text(json.dumps(state))
                (place / "deep" / "inside").write_text(str(state["number"]))
            ray.train.report(dict(state), checkpoint=ray.train.Checkpoint.from_directory(folder))
'''
CONFIG = """
trainer:
  type: torch
  train_loop: counting:count
  train_loop_config: {{num_reports: {num_reports}, seconds: 0.0, begin: 1}}
scaling: {{num_workers: 0}}
run: {{checkpoint: {{keep: 2, best: {{monitor: value, mode: max}}}}, failure: {{max_failures: 0}}}}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """The config of the loop."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    (folder / "counting.py").write_text(LOOP)
    (folder / "loop.yaml").write_text(CONFIG.format(num_reports=NUM_REPORTS))
    return str(folder / "loop.yaml")


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    """A run that nothing happened to, and the number of changes that it made to its files."""
    folder = tmp_path_factory.mktemp("whole")
    counted = folder.with_name("loop-changes")
    child = Child(folder, at=AtChange(0, counted=str(counted)), what=[config])
    assert child.wait() == 0, Path(f"{folder}.log").read_text()
    return run_dirs(folder)[0], counted.stat().st_size


def end_of(run_dir):
    """Return what a loop ended with: its state, each of its reports, and what it takes for the best."""
    run = Run.load(run_dir)
    state = json.loads((latest_checkpoint(run_dir) / "state.json").read_text())
    return run.status, state, [(event.step, event.metrics) for event in run.events()], run.manifest.best


def assert_like(run_dir, reference):
    assert end_of(run_dir) == end_of(reference)
    assert verify_run(run_dir) == []
    left = [path for path in (run_dir / "checkpoints").iterdir() if path.is_dir()]
    assert sorted(path.name for path in left) == sorted(path.name for path in Run.load(run_dir).checkpoints)


def assert_recovers(folder, config, reference):
    for run_dir in run_dirs(folder):
        status_of(run_dir)
    if run_dirs(folder) and status_of(run_dirs(folder)[-1]) == "succeeded":
        assert_like(run_dirs(folder)[-1], reference)
    else:
        assert_like(recovered(folder, what=[config]), reference)


@pytest.mark.slow
def test_a_loop_killed_at_a_random_change_of_a_file(tmp_path, config, whole, seed):
    reference, num_changes = whole
    number = random.Random(f"loop {seed}").randint(1, num_changes)
    assert Child(tmp_path / "runs", at=AtChange(number, killed), what=[config]).wait() == -signal.SIGKILL
    assert_recovers(tmp_path / "runs", config, reference)


@pytest.mark.slow
def test_a_loop_killed_again_and_again(tmp_path, config, whole, seed):
    reference, num_changes = whole
    rng = random.Random(f"loop again {seed}")
    for _ in range(3):
        at = AtChange(rng.randint(1, num_changes // 2), killed)
        child = Child(tmp_path / "runs", ["run.resume=auto"], at, what=[config])
        assert child.wait() in (0, -signal.SIGKILL)
    assert_recovers(tmp_path / "runs", config, reference)


def test_a_sweep_of_loops_killed_at_a_random_change_of_a_file(tmp_path, config, whole, seed):
    words = [config, "--multirun", "trainer.train_loop_config.begin=1,2,3", "sweep.metric=value", "sweep.mode=max"]
    rng = random.Random(f"sweep of loops {seed}")
    at = AtChange(rng.randint(20, 2 * whole[1]), killed)
    assert Child(tmp_path / "runs", at=at, what=words).wait() in (0, -signal.SIGKILL)
    assert Child(tmp_path / "runs", what=words).wait() == 0, Path(f"{tmp_path}/runs.log").read_text()[-3000:]
    folder = only_sweep(tmp_path / "runs")
    trials = read_sweep(folder)["trials"]
    assert [one["status"] for one in trials] == ["succeeded"] * 3
    assert end_of(folder / trials[0]["name"]) == end_of(whole[0])
    assert [len(list(Run.load(folder / one["name"]).events())) for one in trials] == [NUM_REPORTS] * 3


@pytest.mark.slow
def test_a_population_of_loops_killed_at_a_random_change_of_a_file(tmp_path, config, whole, seed):
    words = [config, "--multirun", "trainer.train_loop_config.begin=1,2,3,4", "sweep.metric=value", "sweep.mode=max"]
    words += ["sweep/scheduler=pbt", "sweep.scheduler.interval=4"]
    rng = random.Random(f"population of loops {seed}")
    at = AtChange(rng.randint(20, 4 * whole[1]), killed)
    assert Child(tmp_path / "killed", at=at, what=words).wait() in (0, -signal.SIGKILL)
    for name in ("killed", "whole"):
        assert Child(tmp_path / name, what=words).wait() == 0, Path(f"{tmp_path}/{name}.log").read_text()[-3000:]
    cut, uncut = (read_sweep(only_sweep(tmp_path / name))["trials"] for name in ("killed", "whole"))
    assert any(one["lineage"] for one in uncut)
    assert [one["values"] for one in cut] == [one["values"] for one in uncut]
    for one, other in zip(cut, uncut, strict=True):
        lineages = [[{**entry, "time": ""} for entry in trial["lineage"]] for trial in (one, other)]
        assert lineages[0] == lineages[1]


class OnRay:
    """``rtrain fit`` of the loop on Ray workers, in a process of its own."""

    def __init__(self, folder, config, num_workers, *words):
        self.folder, self.log = folder, folder.with_suffix(".log").open("w+")
        asked = [RTRAIN, "fit", config, f"num_workers={num_workers}", f"run.root_dir={folder}"]
        slow = ["trainer.train_loop_config.seconds=0.1", "run.resume=auto"]
        slow += ["run.failure.max_failures=3"] if num_workers else []
        self.process = subprocess.Popen([*asked, *slow, *words], stdout=self.log, stderr=self.log)
        self.started = []

    def wait(self):
        try:
            return self.process.wait(timeout=180)
        finally:
            self.end()

    def kill(self, what, rng):
        """Kill one of its processes once it has made a random number of reports."""
        until_trained(self.folder, rng.randint(1, NUM_REPORTS - 2))
        self.started = descendants(self.process.pid)
        pids = [self.process.pid] if what == "driver" else named(self.process.pid, what)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(rng.choice(pids), signal.SIGKILL)

    def end(self):
        """Leave none of its processes behind."""
        for pid in [self.process.pid, *self.started]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_loop_on_ray_survives_a_worker_that_dies(tmp_path, config, whole, num_workers, seed):
    one = OnRay(tmp_path / "runs", config, num_workers)
    one.kill("ray::RayTrainWorker", random.Random(f"worker {num_workers} {seed}"))
    assert one.wait() == 0, Path(one.log.name).read_text()[-3000:]
    assert_like(run_dirs(tmp_path / "runs")[-1], whole[0])


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_loop_on_ray_resumes_with_any_number_of_workers(tmp_path, config, whole, num_workers, seed):
    rng = random.Random(f"driver {num_workers} {seed}")
    one = OnRay(tmp_path / "runs", config, num_workers)
    one.kill("driver", rng)
    assert one.wait() == -signal.SIGKILL
    again = OnRay(tmp_path / "runs", config, rng.choice([0, 1, 2]))
    assert again.wait() == 0, Path(again.log.name).read_text()[-3000:]
    (run_dir,) = run_dirs(tmp_path / "runs")
    assert_like(run_dir, whole[0])
