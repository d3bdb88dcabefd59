"""A sweep on a Ray cluster: processes that are used again, and leave nothing behind; one that dies costs no trial."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest
from sweep_results import steady

import rtrain
from rtrain.cli.app import run
from rtrain.runs.run import Run
from rtrain.sweeps.record.sweep_record import read_sweep

WORDS = ["dataset.limit=400", "trainer.max_epochs=4", "trainer.num_threads=1", "sweep.metric=val/loss"]


def kill_one_worker(runs, stop):
    """Kill a process of the first of these runs that is under way."""
    while not stop.wait(0.02):
        for path in runs():
            run = Run.load(path.parent)
            workers = [one["pid"] for one in run.manifest.workers.values() if "pid" in one]
            if run.status == "running" and run.checkpoints and workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(workers[-1], signal.SIGKILL)
                    return


@contextlib.contextmanager
def a_worker_killed(root, trials="*"):
    """Kill a worker of one of these trials while the block runs."""
    stop = threading.Event()
    killer = threading.Thread(target=kill_one_worker, args=(lambda: root.glob(f"*/{trials}/manifest.json"), stop))
    killer.start()
    try:
        yield
    finally:
        stop.set()
        killer.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six trials of one worker each; a process is killed on the way."""
    root = tmp_path_factory.mktemp("runs")
    with a_worker_killed(root):
        return rtrain.sweep("mlp", [*WORDS, "run.seed=1,2,3,4,5,6", f"run.root_dir={root}"])


@pytest.fixture(scope="module")
def runs(folder):
    data = read_sweep(folder)
    assert data["status"] == "succeeded", data
    return [Run.load(folder / one["name"]) for one in data["trials"]]


def test_processes_are_used_again(runs):
    assert 2 <= len({run.manifest.workers["0"]["pid"] for run in runs}) <= 3


def test_the_trial_of_a_process_that_was_killed_went_on(folder, runs):
    starts = [one["num_starts"] for one in read_sweep(folder)["trials"]]
    assert sorted(starts) == [1, 1, 1, 1, 1, 2]
    again = runs[starts.index(2)]
    assert len(again.manifest.resumes) == 1
    assert again.manifest.attempts[-1]["from_step"] > 0


def test_a_trial_in_a_used_process_is_the_same_as_one_that_is_trained_alone(runs, tmp_path):
    pids = [run.manifest.workers["0"]["pid"] for run in runs]
    shared = [run for run, pid in zip(runs, pids, strict=True) if pids.count(pid) > 1]
    later = max(shared, key=lambda run: run.manifest.started_at)  # not the first of its process
    alone = rtrain.fit(str(later.path / "config.yaml"), ["num_workers=0", f"run.root_dir={tmp_path}"])
    last = [run.checkpoints[-1] for run in (alone, later)]
    assert steady(alone) == steady(later)
    from safetensors.numpy import load_file

    for name, value in load_file(last[0] / "model.safetensors").items():
        np.testing.assert_array_equal(value, load_file(last[1] / "model.safetensors")[name])


@pytest.mark.slow
def test_workers_that_train_together_are_used_again_and_a_trial_whose_worker_dies_goes_on(tmp_path):
    words = ["num_workers=2", "run.checkpoint.keep=1,2,3", "run.failure.max_failures=1", f"run.root_dir={tmp_path}"]
    with a_worker_killed(tmp_path, "001-*"):
        folder = rtrain.sweep("mlp", [*WORDS, *words])
    runs = [Run.load(folder / one["name"]) for one in read_sweep(folder)["trials"]]
    assert [run.status for run in runs] == ["succeeded"] * 3
    ends = [[attempt.get("kind") for attempt in run.manifest.attempts] for run in runs]
    assert [len(one) for one in ends] == [1, 2, 1], ends
    assert runs[1].manifest.attempts[-1]["from_step"] > 0
    pids = [{one["pid"] for one in run.manifest.workers.values()} for run in runs]
    assert pids[0].isdisjoint(pids[1]), "new ones after the death"
    assert pids[1] == pids[2]
    assert steady(runs[0]) == steady(runs[1]) == steady(runs[2])


def test_a_trial_that_is_larger_than_the_cluster_is_refused_before_any_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "mlp", "--multirun", "num_workers=1,99", "seed=1,2"]) == 2
    told = capsys.readouterr().err
    assert "99 workers" in told
    assert "try: rtrain fit mlp --multirun seed=1,2 num_workers=" in told
    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.slow
def test_trials_of_all_sizes_take_turns_on_two_cores(tmp_path):
    sizes = ["num_workers=2,1", "scaling.cpus_per_worker=1,0.5", f"run.root_dir={tmp_path}", "trainer.max_epochs=1"]
    folder = rtrain.sweep("mlp", [*WORDS, *sizes])
    data = read_sweep(folder)
    assert [one["status"] for one in data["trials"]] == ["succeeded"] * 4
    workers = [len(Run.load(folder / one["name"]).manifest.workers) for one in data["trials"]]
    assert workers == [2, 2, 1, 1]


@pytest.mark.slow
def test_trials_wait_for_each_other_and_go_on_from_the_same_step(tmp_path):
    words = ["lr=tag(log,interval(1e-6,1e-1))", "sweep=random", "sweep.num_trials=5", "sweep/scheduler=pbt"]
    words += ["sweep.scheduler.interval=2", "trainer.max_epochs=6", "dataset.limit=600", f"run.root_dir={tmp_path}"]
    folder = rtrain.sweep("mlp", [*WORDS, *words])
    trials = read_sweep(folder)["trials"]
    manifests = [Run.load(folder / one["name"]).manifest for one in trials]
    assert {one["status"] for one in trials} == {"succeeded"}
    assert [one for one in trials if one["lineage"]]
    steps = {tuple(attempt["from_step"] for attempt in one.attempts) for one in manifests}
    assert len(steps) == 1, "each paused exactly where it was to"
    assert [one.epoch for one in manifests] == [6] * 5


def test_each_trial_has_as_many_workers_as_its_config_says(tmp_path):
    words = [*WORDS[:1], "trainer.max_epochs=1", "trainer.num_threads=1", "num_workers=0,2"]  # the first needs no Ray
    folder = rtrain.sweep("mlp", [*words, f"run.root_dir={tmp_path}"])
    runs = [Run.load(folder / one["name"]) for one in read_sweep(folder)["trials"]]
    found = {run.manifest.config["scaling"]["num_workers"]: run.manifest for run in runs}
    assert {number: one.attempts[0]["num_workers"] for number, one in found.items()} == {0: 0, 2: 2}
    assert {number: len(one.workers) for number, one in found.items()} == {0: 1, 2: 2}
