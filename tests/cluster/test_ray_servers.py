"""The servers of a Ray cluster are watched from outside: real sockets stand for them."""

import errno
import pickle
import socket
from contextlib import closing

import pytest

from rtrain.cluster import ray_servers
from rtrain.cluster.ray_cluster import Cluster
from rtrain.cluster.ray_servers import RAY_PATIENCE, RayServers

NOWHERE = ("127.0.0.1", 1)


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(ray_servers, "time", made)
    return made


def listening(family=socket.AF_INET, host="127.0.0.1", port=0):
    made = socket.create_server((host, port), family=family)
    return made, made.getsockname()[:2]


def test_the_raylet_is_lost_as_soon_as_it_refuses():
    raylet, place = listening()
    watched = RayServers(place, NOWHERE)
    assert watched.lost is None
    raylet.close()
    assert "raylet" in watched.lost


@pytest.mark.parametrize(("given", "seconds"), [(None, 40), ("120", 100), ("5", 0)])
def test_the_head_is_lost_a_while_before_ray_gives_it_up(clock, monkeypatch, given, seconds):
    if given is not None:
        monkeypatch.setenv(RAY_PATIENCE, given)
    head, place = listening()
    watched = RayServers(NOWHERE, place)
    clock.now += 1000  # whoever reads data does not ask
    assert watched.head_answers
    head.close()
    clock.now += 1
    assert not watched.head_answers
    clock.now += seconds
    assert watched.lost is None
    clock.now += 2
    assert "gcs_server" in watched.lost


def test_a_head_that_is_restarted_in_time_is_not_lost(clock):
    head, place = listening()
    watched = RayServers(NOWHERE, place)
    for _ in range(3):
        head.close()
        clock.now += 30
        assert watched.lost is None
        head, _ = listening(port=place[1])
        clock.now += 2
        assert watched.lost is None
    head.close()


def test_the_head_which_may_be_far_away_is_asked_once_a_second(clock, monkeypatch):
    asked = []
    monkeypatch.setattr(ray_servers, "_error_of", asked.append)
    watched = RayServers(("raylet", 1), ("head", 2))
    asked.clear()
    for _ in range(10):
        clock.now += 0.25
        assert watched.lost is None
    assert asked.count(("head", 2)) == 2


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EADDRNOTAVAIL, errno.ENFILE, errno.EINTR])
def test_what_this_process_lacks_is_not_the_end_of_a_server(clock, monkeypatch, number):
    (raylet, place), (head, other) = listening(), listening()
    with closing(raylet), closing(head):
        watched = RayServers(place, other)
        monkeypatch.setattr(ray_servers, "_error_of", lambda _: OSError(number, "none left"))
        for _ in range(100):
            clock.now += 1.5
            assert (watched.lost, watched.head_answers) == (None, True)


def test_a_pause_between_two_questions_is_no_silence(clock):
    head, place = listening()
    watched = RayServers(NOWHERE, place)
    head.close()
    clock.now += 1000
    assert watched.lost is None
    clock.now += 39
    assert watched.lost is None
    clock.now += 2
    assert "gcs_server" in watched.lost


def test_what_could_not_be_reached_at_the_start_is_not_watched(clock):
    """From behind a proxy or a firewall."""
    watched = RayServers(NOWHERE, NOWHERE)
    clock.now += 1000
    assert (watched.lost, watched.head_answers) == (None, True)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_addresses_of_ipv6_are_understood(clock, monkeypatch):
    import ray

    head, place = listening(socket.AF_INET6, "::1")
    raylet, other = listening(socket.AF_INET6, "::1")

    class Context:
        gcs_address = f"[::1]:{place[1]}"

        def get_node_id(self):
            return "b"

    monkeypatch.setattr(ray, "get_runtime_context", Context)
    nodes = [
        {"NodeID": "a", "NodeManagerAddress": "10.0.0.1", "NodeManagerPort": 1},
        {"NodeID": "b", "NodeManagerAddress": "::1", "NodeManagerPort": other[1]},
    ]
    with closing(head):
        watched = RayServers.of_this_process(nodes)
        assert (watched.lost, watched.head_answers) == (None, True)
        raylet.close()
        assert "raylet" in watched.lost
    clock.now += 1
    assert not watched.head_answers


def test_a_cluster_goes_to_other_processes_with_what_it_is_watched_by():
    raylet, place = listening()
    cluster = pickle.loads(pickle.dumps(Cluster(own=False, nodes=(), servers=RayServers(place, NOWHERE))))
    assert (cluster.is_lost, cluster.answers) == (False, True)
    raylet.close()
    assert cluster.is_lost
