"""Trials start only where all of their workers fit, and none waits forever: over random trials and clusters."""

import random

import pytest

from rtrain.cluster.ray_cluster import Cluster
from rtrain.config.session import Session
from rtrain.errors import NotEnoughResourcesError
from rtrain.runs.observer import SilentObserver
from rtrain.schemas import schemas
from rtrain.sweeps import resources as rooms
from rtrain.sweeps.data import Data
from rtrain.sweeps.planning import Checks
from rtrain.sweeps.resources import JoinedResourceTracker, ResourceRequest, ResourceTracker


def shape(num_workers, cpus=1.0, gpus=0.0, strategy="PACK"):
    return ResourceRequest(num_workers, (("CPU", cpus), ("GPU", gpus)), strategy)


def test_workers_are_placed_where_they_fit():
    room = ResourceTracker([{"CPU": 2.0}, {"CPU": 4.0, "GPU": 1.0}])
    assert sorted(room.take("a", shape(5))) == [0, 0, 1, 1, 1]
    assert room.fits(shape(1, gpus=1))
    assert not room.fits(shape(2))
    room.free("a")
    assert room.fits(shape(6))
    assert not room.fits(shape(7))


def test_strict_strategies_bind():
    room = ResourceTracker([{"CPU": 2.0}, {"CPU": 2.0}])
    assert not room.fits(shape(3, strategy="STRICT_PACK"))
    assert not room.fits(shape(3, strategy="STRICT_SPREAD"))
    assert room.take("a", shape(2, strategy="STRICT_PACK")) == [0, 0]
    assert not room.fits(shape(2, strategy="STRICT_SPREAD"))


class TwoCores:
    """The cluster of a sweep, of one machine."""

    @property
    def starting(self):
        return self

    def prepare(self, composed):
        pass

    def wait(self):
        return Cluster(own=True, nodes=({"CPU": 2.0},))


def test_a_trial_that_its_strategy_keeps_out_is_refused_before_any_starts():
    cluster = TwoCores()
    checks = Checks(Data(SilentObserver(), cluster), cluster, [], SilentObserver().notice)
    words = ["num_workers=1,2", "scaling.placement_strategy=STRICT_SPREAD"]
    with Session("mlp", words, schemas()) as session:
        trials = session.trials(None)
        one, two = (trials.plan(number, (value,)).composed for number, value in enumerate("12"))
        checks.check(one)
        with pytest.raises(NotEnoughResourcesError, match=r"2 workers can't be placed with STRICT_SPREAD.* 1 node"):
            checks.check(two)


def test_parts_of_a_core_and_of_a_gpu_add_up():
    room = ResourceTracker([{"CPU": 1.0, "GPU": 1.0}])
    for owner in range(10):
        room.take(owner, shape(1, cpus=0.1, gpus=0.1))
    assert not room.fits(shape(1, cpus=0.1))
    room.free(3)
    assert room.fits(shape(1, cpus=0.1, gpus=0.1))


def test_a_trial_whose_number_of_workers_may_change_takes_what_is_there():
    room = ResourceTracker([{"CPU": 3.0}])
    assert room.widened(ResourceRequest(1, (("CPU", 1.0),), most=2)).num_workers == 2
    assert room.widened(ResourceRequest(1, (("CPU", 1.0),), most=5)).num_workers == 3
    room.take("a", shape(3))
    assert room.widened(ResourceRequest(1, (("CPU", 1.0),), most=5)).num_workers == 1


class JoinedCluster:
    """What a cluster says of its nodes."""

    def __init__(self, **nodes):
        self.total = {name: {"CPU": cpus} for name, cpus in nodes.items()}
        self.available = {name: dict(node) for name, node in self.total.items()}

    def __call__(self):
        return self.total, self.available


@pytest.fixture
def joined(monkeypatch):
    monkeypatch.setattr(rooms, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(rooms, "STARTING_SECONDS", -1.0)
    cluster = JoinedCluster(one=2.0, two=2.0)
    return cluster, JoinedResourceTracker(cluster)


def test_what_others_hold_is_no_room_and_what_is_seen_late_does_not_matter(joined):
    cluster, room = joined
    assert room.fits(shape(4))
    room.take("a", shape(2))  # which the cluster does not show yet
    assert room.fits(shape(2))
    assert not room.fits(shape(3))
    cluster.available["two"]["CPU"] = 0.0  # now it does, though on another node than was thought
    assert room.fits(shape(2))
    cluster.available["one"]["CPU"] = 1.0  # and somebody else has come
    assert room.fits(shape(1))
    assert not room.fits(shape(2))
    room.free("a")
    assert not room.fits(shape(2)), "it holds them still"
    cluster.available["two"]["CPU"] = 2.0
    assert room.fits(shape(3))
    assert not room.fits(shape(4))


def test_what_others_hold_is_not_forgotten_while_what_was_taken_is_not_seen_yet(joined, monkeypatch):
    cluster, room = joined
    cluster.available["one"]["CPU"] = 0.0
    assert room.fits(shape(2))
    assert not room.fits(shape(3))
    monkeypatch.setattr(rooms, "STARTING_SECONDS", 100.0)
    room.take("a", shape(1))
    assert room.fits(shape(1))
    room.take("b", shape(1))
    assert not room.fits(shape(1))
    cluster.available["two"]["CPU"] = 0.0  # now it is seen
    assert not room.fits(shape(1))
    monkeypatch.setattr(rooms, "STARTING_SECONDS", -1.0)
    cluster.available["one"]["CPU"] = 2.0
    assert room.fits(shape(2))


def test_nodes_come_and_go(joined):
    cluster, room = joined
    assert room.fits(shape(4))
    room.take("a", shape(3))
    del cluster.total["one"]
    assert not room.fits(shape(2))
    assert room.fits(shape(1))
    room.free("a")
    assert room.fits(shape(2))
    assert not room.fits(shape(3))
    cluster.total["three"] = cluster.available["three"] = {"CPU": 4.0}
    assert room.fits(shape(6))


@pytest.mark.parametrize("seed", range(50))
def test_every_trial_gets_its_turn_and_no_node_is_ever_overbooked(seed):
    rng = random.Random(seed)
    nodes = [{"CPU": float(rng.randint(1, 8)), "GPU": float(rng.randint(0, 2))} for _ in range(rng.randint(1, 4))]
    whole, room = ResourceTracker(nodes), ResourceTracker(nodes)
    strategies = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
    drawn = [
        shape(rng.randint(1, 6), rng.choice([0.5, 1, 2]), rng.choice([0, 0, 0.5, 1]), rng.choice(strategies))
        for _ in range(60)
    ]
    waiting = [one for one in drawn if whole.fits(one)]
    running, places, done, total = {}, {}, 0, len(waiting)
    while waiting or running:
        started = False
        if waiting and room.fits(waiting[0]):
            places[done + len(running)] = 0
            key = object()
            running[key] = (waiting[0], room.take(key, waiting.pop(0)))
            started = True
        used = [dict.fromkeys(("CPU", "GPU"), 0.0) for _ in nodes]
        for one, where in running.values():
            for node in where:
                for name, amount in one.worker:
                    used[node][name] += amount
        assert all(got[name] <= node[name] + 1e-6 for got, node in zip(used, nodes, strict=True) for name in got)
        if not started:
            assert running, "everything waits for nothing"
            key = rng.choice(list(running))
            room.free(key)
            del running[key]
            done += 1
    assert done == total
