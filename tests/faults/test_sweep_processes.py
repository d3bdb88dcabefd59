"""A process of a sweep of trials with two Ray workers is killed at a random moment; the sweep loses nothing by it."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from processes import named, until
from started_cluster import SERVERS, started_cluster
from sweep_results import num_events, only_sweep, steady

from rtrain.runs.run import Run
from rtrain.sweeps.record.sweep_record import read_sweep

RTRAIN = str(Path(sys.executable).with_name("rtrain"))
WORDS = [
    *("fit", "mlp", "--multirun", "num_workers=2", "trainer.num_threads=1", "dataset.limit=400", "run.seed=1,2,3"),
    *("trainer.max_epochs=20", "sweep.metric=val/loss", "run.checkpoint.every_steps=20", "run.failure.max_failures=2"),
]
TITLES = {"worker": "ray::RayTrainWorker", "controller": "ray::_Controller", "host": "ray::Host"}
pytestmark = pytest.mark.slow


def reported(folder):
    """Return by trial what was reported."""
    return [steady(Run.load(folder / one["name"])) for one in read_sweep(folder)["trials"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The sweep that nothing happened to."""
    root = tmp_path_factory.mktemp("whole")
    subprocess.run([RTRAIN, *WORDS, f"run.root_dir={root}"], check=True, capture_output=True)
    return only_sweep(root)


@pytest.mark.parametrize("what", list(SERVERS))
@pytest.mark.parametrize("joined", [False, True], ids=["its own cluster", "a cluster that it joined"])
def test_the_loss_of_the_cluster_is_named_and_costs_no_trial(whole, tmp_path, what, joined, seed):
    root, rng, log = tmp_path / "runs", random.Random(f"{what} {seed}"), tmp_path / "log"
    with started_cluster() if joined else nullcontext((None, {})) as (address, pids), log.open("w") as out:
        words = [RTRAIN, *WORDS, f"run.root_dir={root}", *([f"cluster.address={address}"] if joined else [])]
        sweeping = subprocess.Popen(words, stdout=out, stderr=out)
        until(lambda: sum(map(num_events, root.glob("*"))) >= rng.randint(1, 30), seconds=180)
        os.kill(pids[what] if joined else named(sweeping.pid, SERVERS[what])[0], signal.SIGKILL)
        assert sweeping.wait(timeout=120) == 1
    assert "was lost" in log.read_text()
    folder = only_sweep(root)
    assert read_sweep(folder)["status"] == "interrupted"
    again = [RTRAIN, "resume", str(folder), *(["cluster.address=null"] if joined else [])]
    subprocess.run(again, check=True, capture_output=True, timeout=240)
    assert reported(folder) == reported(whole)


@pytest.mark.parametrize("what", list(TITLES))
def test_a_process_that_dies_costs_no_trial_of_several_workers(whole, tmp_path, what, seed):
    root, rng = tmp_path / "runs", random.Random(f"{what} {seed}")
    log = tmp_path / "log"
    with log.open("w") as out:
        sweeping = subprocess.Popen([RTRAIN, *WORDS, f"run.root_dir={root}"], stdout=out, stderr=out)
    number, deadline = rng.randint(1, num_events(whole) * 2 // 3), time.monotonic() + 180
    while sum(map(num_events, root.glob("*"))) < number and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(rng.choice(named(sweeping.pid, TITLES[what])), signal.SIGKILL)
    assert sweeping.wait(timeout=240) == 0, log.read_text()
    folder = only_sweep(root)
    assert reported(folder) == reported(whole)
    trials = read_sweep(folder)["trials"]
    assert sum(one["num_starts"] for one in trials) == (4 if what == "host" else 3)
