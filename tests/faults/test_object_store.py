"""A store that fails in every way, and processes that are killed while they send: what is there is whole."""

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

import pytest
from harness import Child, assert_like, run_dirs
from s3_faults import Fault, faulty

from rtrain.storage.checking import verify_stored
from rtrain.storage.fetching import fetch_run, stored_run, stored_runs

STORAGE = "s3://box/faults"
NUM_REQUESTS = 120
"""About as many as a whole run makes."""


@dataclass(frozen=True)
class OftenCopied:
    """Lets a run be copied many times in its few seconds, by the store that its environment names."""

    environment: dict[str, str]

    def watch(self, folder):
        from rtrain.process import retrying
        from rtrain.storage import fetching, mirror

        os.environ.update(self.environment)
        mirror.POLL_SECONDS, mirror.INTERVAL_SECONDS, retrying.BACKOFF_SECONDS = 0.005, 0.05, (0.02, 0.1)
        fetching.POLL_SECONDS, fetching.SILENCE_SECONDS = 0.05, 0.5


@pytest.fixture
def store(s3, monkeypatch):
    """The way to an empty bucket."""
    s3.put("box", {})
    for name in s3.names("box"):
        s3.client.delete_object(Bucket="box", Key=name)
    with faulty(s3.url) as proxy:
        yield proxy


@pytest.fixture
def train(store, s3, tmp_path):
    """Start a training whose run is copied; more words may be given."""
    copied = OftenCopied({**s3.variables, "AWS_ENDPOINT_URL": store.url})
    words = [f"run.storage={STORAGE}", "run.storage_timeout_seconds=60", "run.resume=auto"]
    return lambda: Child(tmp_path / "runs", words, copied)


@pytest.mark.slow
def test_killed_with_its_machine_while_it_sends(tmp_path, whole, store, train, seed):
    rng = random.Random(seed)
    for _ in range(2):
        number, child = len(store.asked) + rng.randint(1, NUM_REQUESTS), train()
        while child.alive() and len(store.asked) < number:
            time.sleep(0.001)
        with suppress(ProcessLookupError):  # it may have come to its end before
            child.send(signal.SIGKILL)
        assert child.wait() in (0, -signal.SIGKILL)
        assert_nothing_is_torn()
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        if finished():
            break
    else:
        assert train().wait() == 0, (tmp_path / "runs.log").read_text()[-3000:]
        assert_like(run_dirs(tmp_path / "runs")[-1], whole[0])
    assert_the_copy_is_like(tmp_path / "fetched", whole[0])


@pytest.mark.slow
def test_a_store_that_fails_in_every_way(tmp_path, whole, store, train, seed):
    rng = random.Random(seed)
    child = train()
    while child.alive():
        kind = rng.choice(["status", "cut", "slow", "down"])
        if kind == "down":
            store.stop()
            time.sleep(rng.uniform(0, 0.5))
            store.start()
        else:
            status = rng.choice([403, 500, 503]) if kind == "status" else None
            wait = rng.uniform(0, 0.3) if kind == "slow" else 0
            store.faults[:] = [Fault(status=status, cut=kind == "cut", wait_seconds=wait, times=rng.randint(1, 5))]
        time.sleep(rng.uniform(0, 0.2))
    log = (tmp_path / "runs.log").read_text()
    # Before the run begins a store that refuses is an error; so is one that is down for too long.
    if child.wait() == 2:
        assert "run.storage: s3://box/faults" in log
        store.faults.clear()
        assert train().wait() == 0, log[-3000:]
    assert_like(run_dirs(tmp_path / "runs")[-1], whole[0])
    assert_nothing_is_torn()
    assert_the_copy_is_like(tmp_path / "fetched", whole[0])


def finished():
    """Whether the run in the store is over."""
    return any(run.manifest["status"] == "succeeded" for run in stored_runs(STORAGE, "mlp"))


def assert_nothing_is_torn():
    """Check every checkpoint that counts."""
    for run in stored_runs(STORAGE, "mlp"):
        lost = [finding for finding in verify_stored(run) if finding.problem in ("missing", "damaged", "unreadable")]
        assert lost == []


def assert_the_copy_is_like(fetched, reference):
    """Check that the newest run in the store, made a run directory, ended as one that was not hurt."""
    told = []
    newest = next(stored_runs(STORAGE, "mlp"))
    fetch_run(stored_run(newest.folder.url), fetched, told.append)
    assert told == []
    assert_like(fetched, reference)
