"""Sweeps on a cluster of somebody else, where others train too and machines come and go."""

import threading
import time

import pytest
from growing_cluster import add_node, growing_cluster

import rtrain
from rtrain.config.session import Session
from rtrain.runs.observer import SilentObserver
from rtrain.runs.run import Run
from rtrain.schemas import schemas
from rtrain.sweeps import resources
from rtrain.sweeps.executors import ray as executor
from rtrain.sweeps.record.sweep_record import read_sweep
from rtrain.sweeps.sweep import run_sweep

WORDS = ["dataset.limit=400", "trainer.max_epochs=3", "trainer.num_threads=1", "sweep.metric=val/loss", "run.seed=1,2"]


@pytest.fixture(autouse=True)
def no_leaks():
    """Ray is started and stopped by the fixture below."""


@pytest.fixture(scope="module")
def cluster():
    with growing_cluster() as made:
        yield made


@pytest.fixture
def other(cluster):
    """Somebody else's work, on one core."""
    import ray

    @ray.remote(num_cpus=1)
    class Other:
        def works(self):
            return True

    actor = Other.remote()
    assert ray.get(actor.works.remote())
    yield actor
    ray.kill(actor)


class Told(SilentObserver):
    """Keeps the notices of a sweep."""

    def __init__(self):
        self.notices = []

    def notice(self, text):
        self.notices.append(text)


class Sweeping:
    """A sweep in a thread of its own: nodes are only added from the main one."""

    def __init__(self, *words):
        self.told, self.record = Told(), None
        self._thread = threading.Thread(target=self._sweep, args=(words,))
        self._thread.start()

    def _sweep(self, words):
        with Session("mlp", [*WORDS, *words], schemas()) as session:
            self.record = run_sweep(session, self.told)

    def wait_for(self, notice):
        deadline = time.monotonic() + 120
        while not any(notice in text for text in self.told.notices):
            assert self._thread.is_alive()
            assert time.monotonic() < deadline, self.told.notices
            time.sleep(0.05)

    def end(self):
        self._thread.join(240)
        assert self.record is not None
        return [one.status for one in self.record.trials]


@pytest.mark.slow
def test_a_sweep_waits_while_others_hold_the_cluster_and_goes_on_where_a_machine_comes(cluster, other, tmp_path):
    sweeping = Sweeping("num_workers=1", f"run.root_dir={tmp_path}")
    sweeping.wait_for("is pending")
    node = add_node(cluster)
    assert sweeping.end() == ["succeeded"] * 2
    assert len([text for text in sweeping.told.notices if "is pending" in text]) == 1, sweeping.told.notices
    cluster.remove_node(node)


@pytest.mark.slow
def test_a_trial_whose_room_others_take_waits_for_it(cluster, other, tmp_path, monkeypatch):
    import ray

    monkeypatch.setattr(
        resources.JoinedResourceTracker, "_has_room", resources.ResourceTracker._has_room
    )  # as when it is seen too late
    node = add_node(cluster)
    sweeping = Sweeping("num_workers=2", f"run.root_dir={tmp_path}", "scaling.start_timeout_seconds=8")
    sweeping.wait_for("others took its resources")
    ray.kill(other)
    assert sweeping.end() == ["succeeded"] * 2
    cluster.remove_node(node)


@pytest.mark.slow
def test_trials_whose_number_of_workers_may_change_take_what_there_is(cluster, tmp_path):
    node = add_node(cluster)
    folder = rtrain.sweep("mlp", [*WORDS, "num_workers=[1,3]", f"run.root_dir={tmp_path}"])
    trials = read_sweep(folder)["trials"]
    assert [one["status"] for one in trials] == ["succeeded"] * 2
    manifests = [Run.load(folder / one["name"]).manifest for one in trials]
    assert [[attempt["num_workers"] for attempt in one.attempts] for one in manifests] == [[2], [2]]
    assert manifests[0].ended_at < manifests[1].started_at
    cluster.remove_node(node)


@pytest.mark.slow
def test_what_no_trial_needs_any_more_is_left_to_others_while_the_last_one_trains(cluster, tmp_path, monkeypatch):
    import ray

    monkeypatch.setattr(executor, "IDLE_SECONDS", 0.1)
    node = add_node(cluster)
    words = ["num_workers=1", "trainer.max_epochs=1,300", "run.seed=1", f"run.root_dir={tmp_path}"]
    sweeping, free = Sweeping(*words), threading.Event()

    def look():
        while not free.is_set():
            states = [Run.load(path.parent).status for path in tmp_path.glob("*/*/manifest.json")]
            if sorted(states) == ["running", "succeeded"] and ray.available_resources().get("CPU", 0) >= 1:
                free.set()
            time.sleep(0.05)

    threading.Thread(target=look, daemon=True).start()
    assert sweeping.end() == ["succeeded"] * 2
    was_free = free.is_set()
    free.set()
    assert was_free
    cluster.remove_node(node)
