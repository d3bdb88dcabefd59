"""A cluster of rtrain's own: nobody else on the network or the machine reaches it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rtrain.cluster import StartingCluster, connect, token_path
from rtrain.config.schema import ClusterConf
from rtrain.errors import ConfigError

ASK = """
import sys
from ray._raylet import GcsClient
GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, timeout=5)
"""


def children(pid: int) -> list[int]:
    """Return the ids of the processes below one."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    own = [int(child) for task in tasks for child in task.read_text().split()]
    return own + [one for child in own for one in children(child)]


def listening(pid: int) -> set[tuple[str, int]]:
    """Return the addresses and ports that a process and those below it listen on."""
    links = [link for one in (pid, *children(pid)) for link in Path(f"/proc/{one}/fd").glob("*")]
    sockets = {str(link.readlink()) for link in links if link.is_symlink()}
    found = set()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            place, state, inode = (line.split()[column] for column in (1, 3, 9))
            if state == "0A" and f"socket:[{inode}]" in sockets:
                address, _, port = place.partition(":")
                words = bytes.fromhex(address)
                packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
                found.add((socket.inet_ntop(family, packed), int(port, 16)))
    return found


def asked(address: str, **variables: str) -> str:
    """Return how a process of its own fares that asks the cluster for its keys."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    command = [sys.executable, "-c", ASK, address]
    done = subprocess.run(command, env=others | variables, capture_output=True, text=True, check=False)
    return "answered" if done.returncode == 0 else done.stderr


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
def test_nobody_else_on_the_network_or_the_machine_gets_an_answer():
    import ray

    before = listening(os.getpid())  # by other tests of this process
    with connect(ClusterConf(object_store_bytes=80_000_000), 1) as starting:
        starting.wait()
        assert len(children(os.getpid())) > 2, "Ray's processes were not found"
        found = listening(os.getpid()) - before
        assert found
        assert {address for address, _ in found} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
        session = Path(ray._private.worker._global_node.get_session_dir_path())
        assert not list(session.glob("logs/*monitor*")), "these processes make each start a second longer"
        assert any(not folder.stat().st_mode & 0o077 for folder in session.parents), "others can write Ray's logs"
        assert token_path().stat().st_mode & 0o077 == 0
        address = ray.get_runtime_context().gcs_address
        assert asked(address, RAY_AUTH_MODE="token") == "answered"
        assert "InvalidAuthToken" in asked(address, RAY_AUTH_MODE="disabled")
        assert "InvalidAuthToken" in asked(address, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64)


@pytest.mark.parametrize(
    ("runtime_env", "message"),
    [
        ({"pip": ["einops"]}, r"cluster\.runtime_env\.pip: .* packages of this machine.\nInstall what they need here"),
        ({"env_vars": {"NCCL_IB_DISABLE": 1}}, r"runtime_env\.env_vars\.NCCL_IB_DISABLE: .* texts.*\nQuote numbers"),
        ({"env_vars": ["NCCL_DEBUG"]}, r"cluster\.runtime_env\.env_vars: environment variables are texts"),
    ],
    ids=str,
)
def test_what_a_cluster_of_our_own_can_not_do_is_refused_before_it_starts(runtime_env, message):
    with pytest.raises(ConfigError, match=message):
        StartingCluster(ClusterConf(runtime_env=runtime_env), 1)


def test_workers_of_a_cluster_of_our_own_have_the_variables_of_the_user_and_ray_keeps_no_list_of_them():
    import ray

    def look() -> tuple[str | None, str]:
        return os.environ.get("WORD_OF_MINE"), str(ray.get_runtime_context().runtime_env)

    conf = ClusterConf(object_store_bytes=80_000_000, runtime_env={"env_vars": {"WORD_OF_MINE": "to workers"}})
    with connect(conf, 1) as starting:
        starting.wait()
        assert look()[0] is None, "the driver's own environment has changed"
        there, listed = ray.get(ray.remote(look).remote())
    assert there == "to workers"
    assert "WORD_OF_MINE" not in listed
