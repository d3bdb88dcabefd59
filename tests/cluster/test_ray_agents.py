"""The agents of a Ray node start when they are asked for, and are no processes of Ray's until then."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
from processes import descendants, named, title, until

from rtrain.cluster import ray_agents
from rtrain.cluster.ray_cluster import connect
from rtrain.config.schema import ClusterConf

PLACES = ["--node-id=n1", "--node-ip-address=127.0.0.1", "--head"]
AGENT = """
import json, socket, sys
from pathlib import Path

port = int(sys.argv[-1].removeprefix("--runtime-env-agent-port="))
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.bind(("127.0.0.1", port))
whole = Path(sys.argv[1], "agent.new")
whole.write_text(json.dumps([port, sys.argv[2:-1]]))
whole.rename(Path(sys.argv[1], "agent.json"))
"""


def agents(pid):
    return [one for one in descendants(pid) if title(one).startswith(f"{sys.executable} -I -S {ray_agents.__file__}")]


@pytest.fixture
def stand_in(start, tmp_path):
    """Start a process that starts what stands in for an agent, as a node does; return that process."""

    def started(kind, *command):
        words = [sys.executable, "-I", "-S", ray_agents.__file__, kind, *command, f"--session-dir={tmp_path}", *PLACES]
        code = f"import subprocess, sys; subprocess.Popen({words!r}); sys.stdin.read()"
        return start([sys.executable, "-c", code], stdin=subprocess.PIPE)

    return started


def ports(folder):
    return {file.name: int(file.read_text()) for file in folder.glob("*_n1")}


def test_a_cluster_of_our_own_has_no_process_that_nothing_needs_until_a_task_asks_for_it():
    import ray

    def look():
        return os.environ.get("WORD_OF_MINE")

    with connect(ClusterConf(object_store_bytes=80_000_000), 1) as starting:
        starting.wait()
        assert ray.get(ray.remote(look).remote()) is None
        assert len(agents(os.getpid())) == 2
        assert not named(os.getpid(), "dashboard.py"), "a process more at each start, for a dashboard that there is not"
        for word in ("first", "second"):
            wanted = {"env_vars": {"WORD_OF_MINE": word}}
            assert ray.get(ray.remote(look).options(runtime_env=wanted).remote()) == word
        assert len(agents(os.getpid())) == 1, [title(pid) for pid in descendants(os.getpid())]


def test_the_agent_of_the_dashboard_serves_nothing_and_ends_with_the_node(stand_in, tmp_path):
    node = stand_in("dashboard", "no-such-program")
    assert until(lambda: len(ports(tmp_path)) == len(ray_agents.UNUSED))
    assert ports(tmp_path) == {f"{name}_n1": -1 for name in ray_agents.UNUSED}
    (one,) = agents(node.pid)
    node.kill()
    assert until(lambda: not title(one)), "it has outlived its node"


def test_the_agent_of_environments_becomes_rays_own_at_the_first_request_and_has_its_port(stand_in, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    stand_in("runtime_env", sys.executable, str(tmp_path / "agent.py"), str(tmp_path))
    assert until(lambda: ports(tmp_path))
    ((name, port),) = ports(tmp_path).items()
    assert name == "runtime_env_agent_port_n1"
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    assert not (tmp_path / "agent.json").exists(), "nobody has asked"
    socket.create_connection(("127.0.0.1", port)).close()
    assert until((tmp_path / "agent.json").exists)
    assert json.loads((tmp_path / "agent.json").read_text()) == [port, [f"--session-dir={tmp_path}", *PLACES]]


def test_the_agent_of_environments_that_nobody_asks_ends_with_the_node(stand_in, tmp_path):
    node = stand_in("runtime_env", "no-such-program")
    assert until(lambda: ports(tmp_path))
    (one,) = agents(node.pid)
    node.kill()
    assert until(lambda: not title(one)), "it has outlived its node"
