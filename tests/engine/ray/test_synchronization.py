"""The actor by which workers wait for each other is there for those who do, and for nobody else."""

from __future__ import annotations

import pytest
from processes import until

import rtrain
from rtrain.cluster.ray_cluster import connect
from rtrain.config.schema import ClusterConf
from rtrain.engine.ray.synchronization import _LateClass
from rtrain.engine.ray.worker_group import Group
from rtrain.engine.ray.worker_main import _agreed_checkpoint
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.runs.run import Run

LOOPS = '''
import ray.train
import ray.util
from ray.train.collective import barrier, broadcast_from_rank_zero


def meet(config):
    """Report who was there before and after the workers met, and what rank 0 has sent."""
    rank = ray.train.get_context().get_world_rank()
    before = len(ray.util.list_named_actors())
    sent = broadcast_from_rank_zero(10 + rank)
    barrier()
    after = len(ray.util.list_named_actors())
    numbers = ray.train.collective.broadcast_from_rank_zero([before, after, sent])
    ray.train.report({"before": numbers[0], "after": numbers[1], "sent": numbers[2]})


'''


@pytest.fixture
def fit(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "my_meeting.py").write_text(LOOPS)
    monkeypatch.chdir(tmp_path)

    def fit(num_workers: int) -> Run:
        words = ["trainer.train_loop=my_meeting.meet", f"num_workers={num_workers}", "dataset=null"]
        return rtrain.fit("mlp", [*words, f"run.root_dir={tmp_path}/runs"])

    return fit


@pytest.mark.parametrize(("num_workers", "started"), [(1, 0), (2, 1)])
def test_workers_that_meet_start_the_actor_and_one_that_is_alone_needs_none(fit, num_workers, started):
    metrics = fit(num_workers).manifest.metrics
    assert metrics["after"] == started
    assert metrics["before"] in (0, started)  # the other worker may have met already
    assert metrics["sent"] == 10


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
