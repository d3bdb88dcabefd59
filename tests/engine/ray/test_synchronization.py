"""Workers wait for each other in the store of a cluster that rtrain started."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ray.train.v2._internal.exceptions import BroadcastCollectiveTimeoutError
from ray.train.v2._internal.execution.checkpoint.sync_actor import SynchronizationActor as ray_class
from ray.train.v2._internal.execution.worker_group import state, worker_group

import rtrain
from rtrain.cluster import key_value_store
from rtrain.engine.ray.synchronization import LARGE, Meeting, use_store
from rtrain.engine.ray.worker_main import _agreed_checkpoint
from rtrain.runs.checkpoints import checkpoints_dir

MEETING = """
import json
import os
import pathlib
import time

import ray.train
import ray.util
import rtrain
from ray.train.collective import barrier, broadcast_from_rank_zero


class Meet(rtrain.WorkerCallback):
    def __init__(self, folder):
        self.folder = folder

    def train_begin(self, training):
        rank = ray.train.get_context().get_world_rank()
        sent = [broadcast_from_rank_zero({"rank": rank, "number": number, "none": None}) for number in range(50)]
        time.sleep(0.5 * (1 - rank))
        pathlib.Path(self.folder, f"{rank}-here").touch()
        barrier()
        here = len(list(pathlib.Path(self.folder).glob("*-here")))
        seen = len(ray.util.list_named_actors())
        pathlib.Path(self.folder, f"{rank}.json").write_text(json.dumps([seen, here, sent]))
        barrier()
"""


@pytest.mark.parametrize("num_workers", [1, 2])
def test_workers_meet_without_an_actor(tmp_path, monkeypatch, num_workers):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "my_meeting.py").write_text(MEETING)
    monkeypatch.chdir(tmp_path)
    callback = f"trainer.callbacks=[{{_target_: my_meeting.Meet, folder: '{tmp_path}'}}]"
    words = ["trainer.max_epochs=1", f"num_workers={num_workers}", callback]
    rtrain.fit("mlp", [*words, f"run.root_dir={tmp_path}/runs"])
    sent = [{"rank": 0, "number": number, "none": None} for number in range(50)]
    met = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(num_workers)]
    assert met == [[0, num_workers, sent]] * num_workers


@pytest.fixture
def store(monkeypatch):
    """A key-value store without a cluster, that is read by several threads."""
    values = {}
    monkeypatch.setattr(key_value_store, "put", values.__setitem__)
    monkeypatch.setattr(key_value_store, "text", values.get)
    return values


@pytest.mark.parametrize("size", [1, 2, 3, 16])
def test_none_goes_on_before_all_have_come_however_often_they_meet(store, size):
    came, rng = [0] * size, random.Random(size)
    pauses = [[rng.choice([0, 0, 0.001, 0.01]) for _ in range(20)] for _ in range(size)]

    def work(rank):
        meeting, found = Meeting("here"), []
        for number, pause in enumerate(pauses[rank], start=1):
            time.sleep(pause)
            came[rank] = number
            found.append(meeting.meet(rank, size, [rank, number]))
            assert min(came) >= number, "it went on alone"
        return found

    with ThreadPoolExecutor(size) as pool:
        assert [*pool.map(work, range(size))] == [[[0, number] for number in range(1, 21)]] * size
    assert len(store) <= size + 1, "what is over stays"


@pytest.mark.parametrize("size_of_data", [0, 100, 10_000, 1_000_000])
def test_data_of_any_size_arrives_and_is_not_read_by_those_who_wait(store, size_of_data):
    sent = [bytes(size_of_data), bytes(0), bytes(size_of_data)]
    meetings = [Meeting("here"), Meeting("here")]
    with ThreadPoolExecutor(2) as pool:
        for data in sent:
            assert [*pool.map(lambda rank, data=data: meetings[rank].meet(rank, 2, data), (0, 1))] == [data] * 2
            assert len(store["here/0"]) <= LARGE + 10


@pytest.mark.parametrize(("rank", "missing"), [(0, "1, 2"), (1, "2"), (2, "1")])
def test_one_that_waits_longer_than_the_user_allows_is_told_for_whom(store, rank, missing):
    with pytest.raises(BroadcastCollectiveTimeoutError, match=rf"\[{missing}\]"):
        Meeting("here", timeout_seconds=0.05).meet(rank, 3)


def test_one_that_has_waited_in_vain_is_not_a_meeting_ahead(store):
    """Ray's actor forgets that it came, too: nobody goes on without it, and all are at the same meeting afterwards."""
    first, second = Meeting("here", timeout_seconds=0.05), Meeting("here", timeout_seconds=0.05)
    for waits, rank in ((second, 1), (first, 0)):
        with pytest.raises(BroadcastCollectiveTimeoutError):
            waits.meet(rank, 2, "in vain")
    first.timeout_seconds = second.timeout_seconds = 10
    with ThreadPoolExecutor(2) as pool:
        for sent in ("a barrier", "a report"):
            met = [pool.submit(one.meet, rank, 2, f"{sent} of {rank}") for rank, one in enumerate((first, second))]
            assert [one.result() for one in met] == [f"{sent} of 0"] * 2


@pytest.mark.parametrize("is_own", [True, False])
def test_workers_on_a_cluster_that_was_joined_have_rays_actor(monkeypatch, is_own):
    ended = []
    monkeypatch.setattr("ray.kill", ended.append)
    use_store(is_own)
    one = worker_group.SynchronizationActor
    assert (one is ray_class) != is_own
    state._shutdown_sync_actor(one.options(label_selector={}).remote(timeout_s=None) if is_own else "an actor")
    assert ended == ([] if is_own else ["an actor"])


class Board:
    """The board of an attempt, which all workers see."""

    def __init__(self):
        self.values = {}
        self.pin, self.pinned = self.values.__setitem__, self.values.get

    def send(self, record):
        raise AssertionError(record)


def test_all_ranks_resume_from_what_rank_0_has_chosen_at_each_start(tmp_path, monkeypatch):
    chosen = [None, checkpoints_dir(tmp_path) / "epoch-0001", checkpoints_dir(tmp_path) / "epoch-0002"]
    monkeypatch.setattr("rtrain.engine.ray.worker_main.choose_checkpoint", lambda *_: chosen[looks.pop(0)])
    looks, board = [0, 1, 2], Board()
    for number, one in enumerate(chosen):
        assert [_agreed_checkpoint(tmp_path, f"start-{number}", rank, board) for rank in (0, 1, 2)] == [one] * 3
    assert looks == [], "only rank 0 looks"
