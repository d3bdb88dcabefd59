"""The actor by which workers wait for each other is there for those who do, and for nobody else."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from processes import until
from ray.train import ScalingConfig
from ray.train.v2._internal.execution.worker_group import state, worker_group

import rtrain
from rtrain.cluster.ray_cluster import connect
from rtrain.config.schema import ClusterConf
from rtrain.engine.ray.controller import RunTrainer
from rtrain.engine.ray.synchronization import _LateClass, start_late
from rtrain.engine.ray.worker_group import Group
from rtrain.engine.ray.worker_main import _agreed_checkpoint
from rtrain.runs.checkpoints import checkpoints_dir

MEETING = """
import json
import pathlib

import ray.train
import ray.util
import rtrain
from ray.train.collective import barrier, broadcast_from_rank_zero


class Meet(rtrain.WorkerCallback):
    def __init__(self, folder):
        self.folder = folder

    def train_begin(self, training):
        rank = ray.train.get_context().get_world_rank()
        sent = broadcast_from_rank_zero(10 + rank)
        barrier()
        seen = len(ray.util.list_named_actors())
        pathlib.Path(self.folder, f"{rank}.json").write_text(json.dumps([seen, sent]))
        barrier()
"""


@pytest.mark.parametrize(("num_workers", "started"), [(1, 0), (2, 1)])
def test_workers_that_meet_start_the_actor_and_one_that_is_alone_needs_none(
    tmp_path, monkeypatch, num_workers, started
):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "my_meeting.py").write_text(MEETING)
    monkeypatch.chdir(tmp_path)
    callback = f"trainer.callbacks=[{{_target_: my_meeting.Meet, folder: '{tmp_path}'}}]"
    words = ["trainer.max_epochs=1", f"num_workers={num_workers}", callback]
    rtrain.fit("mlp", [*words, f"run.root_dir={tmp_path}/runs"])
    met = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(num_workers)]
    assert met == [[started, 10]] * num_workers


def test_workers_of_a_declared_model_start_none(tmp_path, monkeypatch):
    import ray

    seen, shut_down = [], Group.is_over

    def look(self, seconds):
        seen.append(ray.util.list_named_actors())
        return shut_down(self, seconds)

    monkeypatch.setattr(Group, "is_over", look)
    rtrain.fit("mlp", ["num_workers=2", "trainer.max_epochs=1", f"run.root_dir={tmp_path}"])
    assert seen
    assert not any(seen)


def test_the_actor_is_one_for_all_who_ask_and_ends_with_the_worker_that_has_started_it():
    import ray

    class Count:
        def __init__(self, first):
            self.number = first

        def next(self):
            self.number += 1
            return self.number

    class Worker:
        def next(self, actor):
            return ray.get(actor.started().next.remote())

    with connect(ClusterConf(object_store_bytes=80_000_000), 2) as starting:
        starting.wait()
        late = _LateClass(ray.remote(num_cpus=0)(Count), {}).options(num_cpus=0).remote(first=5)
        assert ray.util.list_named_actors() == []
        first, second = (ray.remote(num_cpus=0)(Worker).remote() for _ in range(2))
        assert [ray.get(one.next.remote(late)) for one in (first, second)] == [6, 7]
        assert len(ray.util.list_named_actors()) == 1
        ray.kill(first)
        assert until(lambda: ray.util.list_named_actors() == [])


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


@pytest.mark.parametrize("is_late", [True, False])
def test_workers_whose_loop_calls_collectives_find_the_actor_started(monkeypatch, is_late):
    ended = []
    monkeypatch.setattr("ray.kill", ended.append)
    start_late(is_late)
    actor_class = worker_group.SynchronizationActor
    assert isinstance(actor_class, _LateClass) == is_late
    state._shutdown_sync_actor(actor_class.options().remote() if is_late else "an actor")
    assert ended == ([] if is_late else ["an actor"])


@pytest.mark.parametrize(
    ("num_workers", "own", "uses_collectives", "is_late"),
    [
        (1, True, True, True),
        (1, True, False, True),
        (2, True, False, True),
        (2, True, True, False),
        (1, False, False, False),
    ],
)
def test_the_actor_starts_late_where_nobody_needs_it_at_once(num_workers, own, uses_collectives, is_late):
    trainer = RunTrainer(
        print,
        scaling_config=ScalingConfig(num_workers=num_workers),
        channel="run",
        cluster=SimpleNamespace(own=own, session=None),
        start_timeout_seconds=60,
        uses_collectives=uses_collectives,
    )
    assert trainer._meets_late == is_late
