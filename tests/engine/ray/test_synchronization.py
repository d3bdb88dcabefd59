"""Workers of a cluster that rtrain started wait for each other in the process of rank 0."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client, Listener

import pytest
from ray.train import collective
from ray.train.v2._internal.exceptions import BroadcastCollectiveTimeoutError
from ray.train.v2._internal.execution.checkpoint.sync_actor import SynchronizationActor as ray_class
from ray.train.v2._internal.execution.worker_group import state, worker_group

import rtrain
from rtrain.cluster import key_value_store
from rtrain.engine.ray.synchronization import THIS_MACHINE, Meeting, meet_at_rank_zero
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
    assert len(store) == (size > 1), "what is over stays"


@pytest.mark.parametrize("size_of_data", [0, 100, 10_000, 1_000_000])
def test_data_of_any_size_arrives(store, size_of_data):
    sent = [bytes(size_of_data), bytes(0), bytes(size_of_data)]
    meetings = [Meeting("here"), Meeting("here")]
    with ThreadPoolExecutor(2) as pool:
        for data in sent:
            assert [*pool.map(lambda rank, data=data: meetings[rank].meet(rank, 2, data), (0, 1))] == [data] * 2


@pytest.mark.parametrize("came", [(0,), (0, 1), (0, 2), (1, 2)])
def test_those_that_wait_longer_than_the_user_allows_are_told_for_whom(store, came):
    """The first to leave is not there for the second, as in Ray's actor."""
    absent = {0, 1, 2} - {*came} if 0 in came else {0}
    with ThreadPoolExecutor(len(came)) as pool:
        waiting = {rank: pool.submit(Meeting("here", timeout_seconds=0.3).meet, rank, 3) for rank in came}
        for rank, one in waiting.items():
            with pytest.raises(BroadcastCollectiveTimeoutError) as error:
                one.result()
            told = {*json.loads(re.search(r"\[.*?\]", str(error.value)).group())}
            assert absent <= told <= {0, 1, 2} - {rank}


def test_strangers_are_not_answered_and_keep_nobody_from_the_meeting(store):
    meetings = [Meeting("here", timeout_seconds=20), Meeting("here", timeout_seconds=20)]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(meetings[0].meet, 0, 2, "all")
        while "here" not in store:
            time.sleep(0.01)
        with Client((THIS_MACHINE, int(store["here"]))) as silent, Client((THIS_MACHINE, int(store["here"]))) as wrong:
            wrong.send_bytes(b"there")
            with pytest.raises((EOFError, ConnectionResetError)):
                wrong.recv()
            assert (meetings[1].meet(1, 2), first.result()) == ("all", "all")
            assert not silent.poll()


def test_one_whose_rank_0_has_ended_waits_for_its_own_end(store):
    began = time.monotonic()
    with Listener((THIS_MACHINE, 0)) as listener, ThreadPoolExecutor(1) as pool:
        store["here"] = str(listener.address[1])
        left = pool.submit(Meeting("here", timeout_seconds=0.5).meet, 1, 2)
        listener.accept().close()
        with pytest.raises(BroadcastCollectiveTimeoutError, match=r"\[0\]"):
            left.result()
    assert time.monotonic() - began >= 0.5


def test_one_that_has_waited_in_vain_is_not_a_meeting_ahead(store):
    """Ray's actor forgets that it came, too: nobody goes on without it, and all are at the same meeting afterwards."""
    first, second = Meeting("here", timeout_seconds=1), Meeting("here", timeout_seconds=1)
    for waits, rank in ((second, 1), (first, 0), (second, 1), (first, 0)):
        with pytest.raises(BroadcastCollectiveTimeoutError):
            waits.meet(rank, 2, "in vain")
    with ThreadPoolExecutor(2) as pool:
        for sent in ("a barrier", "a report"):
            met = [pool.submit(one.meet, rank, 2, f"{sent} of {rank}") for rank, one in enumerate((first, second))]
            assert [one.result() for one in met] == [f"{sent} of 0"] * 2


@pytest.mark.parametrize("is_own", [True, False])
def test_workers_on_a_cluster_that_was_joined_have_rays_actor(monkeypatch, is_own):
    ended = []
    monkeypatch.setattr("ray.kill", ended.append)
    meet_at_rank_zero(is_own)
    one = worker_group.SynchronizationActor
    assert (one is ray_class) != is_own
    state._shutdown_sync_actor(one.options(label_selector={}).remote(timeout_s=None) if is_own else "an actor")
    assert ended == ([] if is_own else ["an actor"])


def test_all_ranks_resume_from_what_rank_0_has_chosen_at_each_start(store, tmp_path, monkeypatch):
    chosen = [None, checkpoints_dir(tmp_path) / "epoch-0001", checkpoints_dir(tmp_path) / "epoch-0002"]
    looks, meetings, here = [*chosen], [Meeting("here") for _ in chosen], threading.local()

    def broadcast(data):
        return meetings[here.rank].meet(here.rank, 3, data)

    def agreed(rank):
        here.rank = rank
        return _agreed_checkpoint(tmp_path, rank, None)

    monkeypatch.setattr(collective, "broadcast_from_rank_zero", broadcast)
    monkeypatch.setattr("rtrain.engine.ray.worker_main.choose_checkpoint", lambda *_: looks.pop(0))
    with ThreadPoolExecutor(3) as pool:
        for one in chosen:
            assert [*pool.map(agreed, (0, 1, 2))] == [one] * 3
    assert looks == [], "only rank 0 looks"
