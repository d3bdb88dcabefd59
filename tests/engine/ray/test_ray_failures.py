"""Faults of every kind on real Ray workers: the run goes on, or says why it doesn't."""

import contextlib
import os
import re
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
import ray

from rtrain.cluster.ray_cluster import StartingCluster
from rtrain.config.schema import ClusterConf
from rtrain.config.session import Session
from rtrain.errors import TrainingError
from rtrain.runs.observer import SilentObserver
from rtrain.runs.run import Run
from rtrain.schemas import schemas
from rtrain.training.fit import fit_session

MODEL = '''
import os
import pathlib
import signal
import time

import torch
import torch.distributed as dist
from torch import nn


class Faulty(nn.Module):
    """Does what it is told at a step of one rank: ``{kind, rank, step}``; once, unless ``always``."""

    def __init__(self, faults, folder):
        super().__init__()
        self.net, self.faults, self.folder = nn.Linear(64, 10), faults, folder
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.step += 1
            for fault in self.faults:
                mark = pathlib.Path(self.folder) / f"{fault['kind']}-{fault['step']}"
                if self.step >= fault["step"] and dist.get_rank() == fault["rank"] and not mark.exists():
                    if not fault.get("always"):
                        mark.touch()
                    getattr(self, fault["kind"])()
        return self.net(x.flatten(1))

    def kill(self):
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    def hang(self):
        time.sleep(600)

    def fail(self):
        raise ValueError(f"rank {dist.get_rank()} has had enough")

    def memory(self):
        torch.zeros(2**50)

    def slow(self):
        time.sleep(5)
'''
LOOPS = """
import pathlib
import tempfile
import time

import ray.train


def fails_once(config):
    start = 0
    if ray.train.get_checkpoint():
        with ray.train.get_checkpoint().as_directory() as folder:
            start = int((pathlib.Path(folder) / "done").read_text())
    for number in range(start, 4):
        mark = pathlib.Path(config["mark"])
        first = ray.train.get_context().get_world_rank() == 0
        if first and number == 2 and not mark.exists():
            mark.touch()
            raise RuntimeError("once is enough")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "done").write_text(str(number + 1))
            checkpoint = ray.train.Checkpoint.from_directory(folder) if first else None
            ray.train.report({"number": number, "start": start}, checkpoint=checkpoint)


def fails_late(config):
    context, checkpoint = ray.train.get_context(), ray.train.get_checkpoint()
    start = 0
    if checkpoint is not None:
        start = max(int(path.read_text()) for path in pathlib.Path(checkpoint.path).glob("rank-*"))
    for number in range(start + 1, 7):
        if number == 6 and not checkpoint:
            raise RuntimeError("late")
        folder = tempfile.mkdtemp()
        (pathlib.Path(folder) / f"rank-{context.get_world_rank()}").write_text(str(number))
        metrics = {"number": number, "world_size": context.get_world_size(), "note": "a text"}
        mode = ray.train.CheckpointUploadMode.SYNC if number % 2 else ray.train.CheckpointUploadMode.ASYNC
        ray.train.report(metrics, ray.train.Checkpoint.from_directory(folder), checkpoint_upload_mode=mode)


def rests_once(config):
    for number in range(4):
        with tempfile.TemporaryDirectory() as folder:
            first = ray.train.get_context().get_world_rank() == 0
            ray.train.report({"number": number}, ray.train.Checkpoint.from_directory(folder) if first else None)
        mark = pathlib.Path(config["mark"])
        if first and number == 2 and not mark.exists():
            mark.touch()
            time.sleep(60)


def lasts():
    for number in range(3):
        time.sleep(0.5)
        ray.train.report({"number": number})
    assert ray.train.get_all_reported_checkpoints() == []


def trains_alone():
    import numpy
    import xgboost

    rows = numpy.random.rand(20, 2)
    xgboost.train({}, xgboost.DMatrix(rows, rows[:, 0]), 1)
    ray.train.report({"trained": 1})


def validates_on_rank_0():
    for epoch in range(2):
        for _ in ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=100):
            pass
        if ray.train.get_context().get_world_rank() == 0:
            for _ in ray.train.get_dataset_shard("test").iter_torch_batches(batch_size=100):
                pass
        ray.train.report({"epoch": epoch})


def fails_at_first():
    return {"a": 1}["b"]


def fails_on_one_rank():
    ray.train.report({"loss": 1.0})
    if ray.train.get_context().get_world_rank() == 1:
        raise ValueError("rank one has had enough")
    ray.train.report({"loss": 0.5})
"""
CONFIG = """
defaults:
  - dataset: digits
  - trainer: torch
trainer:
  model: {{_target_: faulty.Faulty, faults: {faults}, folder: {folder}}}
  optimizer: {{_target_: torch.optim.SGD, lr: 0.1}}
  batch_size: 20
  max_epochs: null
  max_steps: 40
run: {{root_dir: {folder}/runs, checkpoint: {{every_epochs: null, every_steps: 2}}}}
"""
LOOP_CONFIG = """
trainer: {{type: torch, train_loop: "failing_loops:{loop}", train_loop_config: {{mark: {folder}/mark}}}}
run: {{root_dir: {folder}/runs}}
"""


@pytest.fixture(autouse=True)
def no_leaks():
    """Ray stays up for all tests of this file."""


@pytest.fixture(scope="module")
def cluster():
    starting = StartingCluster(ClusterConf(), 4)
    starting.wait()
    yield starting
    assert starting.wait().session.before_end == [], "runs that are over are kept"
    starting.close()


class Notices(SilentObserver):
    def __init__(self):
        self.notices = []

    def notice(self, text):
        self.notices.append(text)


def fit(folder, cluster, faults, *overrides):
    listed = ", ".join("{" + ", ".join(f"{key}: {value}" for key, value in one.items()) + "}" for one in faults)
    (folder / "faulty.py").write_text(MODEL)
    return fit_config(folder, cluster, CONFIG.format(faults=f"[{listed}]", folder=folder), *overrides)


def fit_loop(folder, cluster, loop, *overrides):
    (folder / "failing_loops.py").write_text(LOOPS)
    return fit_config(folder, cluster, LOOP_CONFIG.format(loop=loop, folder=folder), *overrides)


def fit_config(folder, cluster, text, *overrides):
    """Return the run, also one that failed, and what was said of it."""
    (folder / "pyproject.toml").write_text("")
    (folder / "faulty.yaml").write_text(text)
    observer = Notices()
    with Session(str(folder / "faulty.yaml"), ["num_workers=2", *overrides], schemas(), None) as session:
        try:
            return fit_session(session, observer, cluster), observer.notices
        except TrainingError as error:
            (path,) = (folder / "runs" / "faulty").iterdir()
            return Run.load(path), [*observer.notices, str(error)]


def test_a_killed_worker_is_replaced_and_training_goes_on_from_the_checkpoint(tmp_path, cluster):
    run, notices = fit(tmp_path, cluster, [{"kind": "kill", "rank": 1, "step": 5}], "trainer.max_steps=8")
    killed, last = run.manifest.attempts
    assert run.status == "succeeded", notices
    assert (killed["ended_because"]["kind"], killed["ended_because"]["rank"]) == ("worker died", 1)
    assert last["from_step"] in (2, 4)
    assert run.manifest.step == 8


@pytest.mark.slow
def test_a_loop_of_ones_own_goes_on_from_its_checkpoint(tmp_path, cluster):
    run, notices = fit_loop(tmp_path, cluster, "fails_once", "run.failure.max_failures=1")
    assert run.status == "succeeded", notices
    assert [event.step for event in run.events()] == [1, 2, 3, 4]
    assert [event.metrics["start"] for event in run.events()] == [0, 0, 2, 2]
    assert [attempt["from_checkpoint"] for attempt in run.manifest.attempts] == [None, "report-000002"]


@pytest.mark.slow
def test_a_loop_resumes_with_another_number_of_workers_whatever_was_pruned(tmp_path, cluster):
    failed, _ = fit_loop(tmp_path, cluster, "fails_late", "run.failure.max_failures=0")
    assert failed.status == "failed"
    folder = failed.path / "checkpoints"
    assert sorted(path.name for path in folder.glob("report-*")) == ["report-000004", "report-000005"]
    (folder / "checkpoint_manager_snapshot.json").write_text('{"checkpoint_results": [{"checkpoint_dir_name": "x"}]}')
    run, notices = fit_loop(tmp_path, cluster, "fails_late", f"run.resume={failed.path}", "num_workers=1")
    assert run.status == "succeeded", notices
    assert [event.metrics["number"] for event in run.events()] == [1, 2, 3, 4, 5, 6]
    assert [event.metrics["world_size"] for event in run.events()] == [2] * 5 + [1]
    assert [event.values for event in run.events()] == [{"note": "a text"}] * 6
    assert [path.name for path in run.checkpoints] == ["report-000005", "report-000006"]
    assert set(run.manifest.checkpoints[0]["files"]) == {"about.json", "rank-0", "rank-1", "events.jsonl"}


@pytest.mark.slow
def test_a_framework_that_trains_a_model_per_worker_fails_the_run_at_once(tmp_path, cluster):
    run, said = fit_loop(tmp_path, cluster, "trains_alone")
    assert run.status == "failed"
    assert len(run.manifest.attempts) == 1
    assert "train with xgboost" in said[-1]


@pytest.mark.slow
def test_a_shard_that_one_worker_alone_reads_fails_the_run_at_once(tmp_path, cluster):
    run, said = fit_loop(tmp_path, cluster, "validates_on_rank_0", "dataset=digits")
    assert run.status == "failed"
    assert len(run.manifest.attempts) == 1
    assert "'test'" in said[-1]


def test_the_true_error_comes_first_with_its_rank(tmp_path, cluster):
    run, said = fit_loop(tmp_path, cluster, "fails_on_one_rank", "run.failure.max_failures=0")
    expected = r"ValueError on worker 1( \(worker 0 failed after it\))?: rank one has had enough"
    assert re.match(expected, said[-1]), said
    assert "in fails_on_one_rank" in said[-1]
    assert '| raise ValueError("rank one has had enough")' in said[-1]
    assert run.manifest.status == "failed"
    assert run.manifest.error["rank"] == 1
    assert "rank one has had enough" in run.manifest.error["traceback"]
    assert "failing_loops.py" in (run.path / "logs" / "worker-1.log").read_text()


@pytest.mark.slow
def test_a_killed_worker_and_a_hung_one_and_an_exception_are_survived_one_after_the_other(tmp_path, cluster):
    faults = [
        {"kind": "kill", "rank": 0, "step": 5},
        {"kind": "hang", "rank": 1, "step": 11},
        {"kind": "fail", "rank": 1, "step": 21},
    ]
    run, notices = fit(tmp_path, cluster, faults, "run.failure.hang_seconds=4")
    attempts = run.manifest.attempts
    assert run.status == "succeeded", notices
    assert run.manifest.step == 40
    whys = [attempt.get("ended_because", {}) for attempt in attempts]
    assert [why.get("kind") for why in whys] == ["worker died", "hang", "exception", None]
    assert [why.get("rank") for why in whys] == [0, None, 1, None]
    assert [attempt["from_checkpoint"] is None for attempt in attempts] == [True, False, False, False]
    assert "ValueError on worker 1" in whys[2]["message"]
    assert "worker 1 in" in whys[1]["message"]
    assert "faulty.py" in whys[1]["message"]
    assert "(hang)" in whys[1]["message"]
    assert "in hang" in (run.path / "logs" / "worker-1.stacks.txt").read_text()
    assert "loop.py" in (run.path / "logs" / "worker-0.stacks.txt").read_text()
    assert [notice for notice in notices if notice.endswith("starting again")] != []


@pytest.mark.slow
def test_an_exception_that_comes_again_ends_the_run_and_is_told_with_its_rank(tmp_path, cluster):
    run, said = fit(tmp_path, cluster, [{"kind": "fail", "rank": 1, "step": 3, "always": "true"}])
    assert run.status == "failed"
    assert said[-1].startswith("ValueError on worker 1")
    assert "rank 1 has had enough" in said[-1]
    assert "Gave up after 2 attempts: the same error occurred again" in said[-1]
    assert len(run.manifest.attempts) == 2
    assert run.manifest.error["rank"] == 1


@pytest.mark.slow
def test_a_mistake_before_the_first_step_is_not_tried_again(tmp_path, cluster):
    run, said = fit_loop(tmp_path, cluster, "fails_at_first", "num_workers=1")
    assert run.status == "failed"
    assert len(run.manifest.attempts) == 1
    assert said[-1].startswith("KeyError on worker 0: 'b'\n  --> ")
    assert '| return {"a": 1}["b"]' in said[-1]
    assert "Not retried: the error is in your code" in said[-1]
    assert f"The full traceback is in {run.path}/logs/worker-0.log" in said[-1]
    assert "KeyError" in (run.path / "logs" / "driver.log").read_text()


@pytest.mark.slow
def test_memory_that_is_not_enough_says_what_to_change(tmp_path, cluster):
    run, said = fit(tmp_path, cluster, [{"kind": "memory", "rank": 0, "step": 3, "always": "true"}])
    assert run.manifest.attempts[-1]["ended_because"]["kind"] == "out of memory"
    assert "trainer.batch_size" in said[-1]


@pytest.mark.slow
def test_a_controller_that_is_killed_is_replaced(tmp_path, cluster):
    """That of the workers of a sweep is a process, in a cluster that this one did not start."""

    def kill():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (tmp_path / "mark").exists():
            time.sleep(0.1)
        for process in psutil.Process().children(recursive=True):
            if "_Controller" in "".join(process.cmdline()):
                os.kill(process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    joined = SimpleNamespace(wait=lambda: replace(cluster.wait(), session=None))
    run, notices = fit_loop(tmp_path, joined, "rests_once")
    thread.join()
    assert run.status == "succeeded", notices
    assert [one.get("ended_because", {}).get("kind") for one in run.manifest.attempts] == ["controller died", None]


def _titles():
    """Return the processes of this one by number and title; Ray's workers are called after what runs there."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            found.add((process.pid, "".join(process.cmdline())))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("what", [["model"], ["loop"], ["loop", "+dataset=digits"]])
def test_the_controller_is_no_process(tmp_path, cluster, what):
    """The driver has imported all of it: a process more would take seconds."""
    titles, before, ended = set(), _titles(), threading.Event()

    def look():
        while not ended.wait(0.2):
            titles.update(_titles() - before)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        if what == ["model"]:
            run, notices = fit(tmp_path, cluster, [], "trainer.max_steps=4")
        else:
            run, notices = fit_loop(tmp_path, cluster, "lasts", *what[1:])
    finally:
        ended.set()
        thread.join()
    assert run.status == "succeeded", notices
    assert any("RayTrainWorker" in title for _, title in titles)
    assert not any("_Controller" in title for _, title in titles)
    assert ray._private.auto_init_hook.enable_auto_connect
    with pytest.raises(RuntimeError, match="only available in an actor"):
        _ = ray.get_runtime_context().current_actor
