"""A cluster of rtrain's own: nobody else on the network or the machine reaches it."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from processes import alive, descendants, named, title, until

from rtrain.cluster import ray_agents
from rtrain.cluster.loopback import alone_on_this_machine, token_path
from rtrain.cluster.ray_cluster import (
    END_SECONDS,
    StartingCluster,
    _job_config,
    connect,
)
from rtrain.cluster.ray_session import LOCK_NAME, clear_finished
from rtrain.config.schema import ClusterConf
from rtrain.errors import ConfigError

ASK = """
import sys
from ray._raylet import GcsClient
GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, timeout=5)
"""


def listening(pid: int) -> set[tuple[str, int]]:
    """Return the addresses and ports that a process and those below it listen on."""
    links = [link for one in (pid, *descendants(pid)) for link in Path(f"/proc/{one}/fd").glob("*")]
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
def test_nobody_else_on_the_network_or_the_machine_gets_an_answer(monkeypatch):
    import ray

    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    before, others = listening(os.getpid()), set(descendants(os.getpid()))  # of other tests of this process
    with connect(ClusterConf(object_store_bytes=80_000_000), 1) as starting:
        starting.wait()
        assert len(descendants(os.getpid())) > 2, "Ray's processes were not found"
        found = listening(os.getpid()) - before
        assert found
        assert {address for address, _ in found} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
        session = Path(ray._private.worker._global_node.get_session_dir_path())
        assert not list(session.glob("logs/*monitor*")), "these processes make each start a second longer"
        assert any(not folder.stat().st_mode & 0o077 for folder in session.parents), "others can write Ray's logs"
        assert token_path().stat().st_mode & 0o077 == 0
        sessions = {os.getsid(pid) for pid in {*descendants(os.getpid())} - others if "ray" in title(pid)}
        assert os.getsid(0) not in sessions, "what is sent to the group of the driver reaches Ray"
        address = ray.get_runtime_context().gcs_address
        assert asked(address, RAY_AUTH_MODE="token") == "answered"
        assert "InvalidAuthToken" in asked(address, RAY_AUTH_MODE="disabled")
        assert "InvalidAuthToken" in asked(address, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64)
        clear_finished(session.parent)
        assert (session / LOCK_NAME).exists(), "another start has removed the folder of a cluster that lives"
    assert not session.exists()


@pytest.mark.parametrize("mode", ["token", "disabled"])
def test_the_token_is_for_this_account_alone_and_is_not_made_where_it_is_turned_off(mode, tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "ray" / "token"))
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    with alone_on_this_machine():
        assert token_path().exists() is (mode == "token")
    if mode == "token":
        assert token_path().stat().st_mode & 0o777 == 0o600
        token_path().chmod(0o644)
        with alone_on_this_machine():
            assert token_path().stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("runtime_env", "message"),
    [
        ({"pip": ["einops"]}, r"cluster\.runtime_env\.pip: .* packages of this machine.\nInstall what they need here"),
        ({"env_vars": {"NCCL_IB_DISABLE": 1}}, r"runtime_env\.env_vars\.NCCL_IB_DISABLE: .* to text\.\nQuote numbers"),
        ({"env_vars": ["NCCL_DEBUG"]}, r"cluster\.runtime_env\.env_vars: environment variables must be a mapping"),
    ],
    ids=str,
)
def test_what_a_cluster_of_our_own_can_not_do_is_refused_before_it_starts(runtime_env, message):
    with pytest.raises(ConfigError, match=message):
        StartingCluster(ClusterConf(runtime_env=runtime_env), 1)


def test_a_cluster_waits_for_one_that_was_closed_while_it_started(monkeypatch):
    events, may_start = [], threading.Event()
    ray = SimpleNamespace(is_initialized=lambda: False, shutdown=lambda: events.append("shut down"))
    monkeypatch.setitem(sys.modules, "ray", ray)

    def start(cluster: StartingCluster) -> None:
        events.append("starts")
        may_start.wait(10)

    monkeypatch.setattr(StartingCluster, "_connect", start)
    StartingCluster(ClusterConf(), 1).close()
    threading.Timer(0.2, may_start.set).start()
    second = StartingCluster(ClusterConf(), 1)
    second._ready.wait(10)
    second.close()
    assert events == ["starts", "shut down"] * 2


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


HOLD = """
import os, sys
from pathlib import Path
from rtrain.cluster.ray_cluster import connect
from rtrain.config.schema import ClusterConf
with connect(ClusterConf(object_store_bytes=80_000_000), 1) as starting:
    starting.wait()
    import ray
    print(ray._private.worker._global_node.get_session_dir_path(), flush=True)
    if os.fork() == 0:  # what a loader's worker is: it holds all that its parent has open
        sys.stdin.read()
        os._exit(0)
    sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux")
def test_nothing_of_a_cluster_outlives_a_driver_that_is_killed(start):
    driver = start([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    session = Path(driver.stdout.readline().strip())
    assert session.is_dir()
    of_ray = [pid for pid in descendants(driver.pid) if "ray" in title(pid) and HOLD not in title(pid)]
    assert any(title(pid).startswith(f"{sys.executable} -I -S {ray_agents.__file__}") for pid in of_ray)
    os.kill(driver.pid, signal.SIGKILL)
    assert until(lambda: not alive(of_ray), seconds=20), [title(pid) for pid in alive(of_ray)]
    assert until(lambda: not session.exists(), seconds=20)
    link = session.parent / "session_latest"
    assert until(lambda: not link.is_symlink() or link.exists(), seconds=5), "a link that leads nowhere"


@pytest.mark.parametrize("newest", ["session_dead", "session_gone"])
def test_only_folders_of_our_own_that_nobody_holds_are_cleared(tmp_path, newest):
    for name in ("session_dead", "session_lives", "session_of_ray", "something"):
        (tmp_path / name / "logs").mkdir(parents=True)
    for name in ("session_dead", "session_lives", "something"):
        (tmp_path / name / LOCK_NAME).touch()
    (tmp_path / "session_latest").symlink_to(newest)
    with (tmp_path / "session_lives" / LOCK_NAME).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        clear_finished(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"session_lives", "session_of_ray", "something"}


def test_folders_that_another_process_clears_at_the_same_time_are_no_error(tmp_path, monkeypatch):
    def glob(self, pattern):
        found = list(find(self, pattern))
        for path in found:
            path.unlink() if path.is_symlink() else path.rmdir()
        return found

    (tmp_path / "session_dead").mkdir()
    (tmp_path / "session_latest").symlink_to("session_dead")
    find = Path.glob
    monkeypatch.setattr(Path, "glob", glob)
    clear_finished(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_somebody_else_is_no_leave_to_remove_a_folder(tmp_path, monkeypatch):
    (tmp_path / "session_theirs").mkdir()
    (tmp_path / "session_theirs" / LOCK_NAME).touch()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    clear_finished(tmp_path)
    assert (tmp_path / "session_theirs" / LOCK_NAME).exists()


@pytest.mark.parametrize("looks_there", [False, True])
def test_workers_look_for_modules_where_the_driver_does(looks_there, tmp_path, monkeypatch):
    """Ray would add the current folder: in one like /tmp, anybody could leave a module there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, *([str(tmp_path)] if looks_there else [])])
    folders = _job_config()._py_driver_sys_path
    folders.extend([str(tmp_path), str(tmp_path / "other")])
    assert folders == ([str(tmp_path)] if looks_there else [])


def test_workers_import_nothing_of_the_current_folder(tmp_path, monkeypatch):
    import ray

    (tmp_path / "left_behind.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with connect(ClusterConf(object_store_bytes=80_000_000), 1) as starting:
        starting.wait()
        found = ray.remote(lambda: __import__("importlib.util").util.find_spec("left_behind"))
        assert ray.get(found.remote()) is None


@pytest.fixture
def started(monkeypatch):
    """Notes what Ray is started with, and in which environment, in place of starting it."""
    import ray

    noted = {}

    def init(**given):
        noted.update(given, **{name: os.environ.get(name) for name in ("WORD_OF_MINE",)})
        raise RuntimeError("not started")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def start(**conf):
        with pytest.raises(ConfigError, match="not started"), connect(ClusterConf(**conf), 1) as starting:
            starting.wait()
        return noted

    return start


@pytest.mark.parametrize(
    ("key", "value", "asked", "found"),
    [
        ("address", "10.0.0.1:6379", "address", "10.0.0.1:6379"),
        ("object_store_bytes", 90_000_000, "object_store_memory", 90_000_000),
        ("runtime_env", {"env_vars": {"WORD_OF_MINE": "to workers"}}, "WORD_OF_MINE", "to workers"),
    ],
    ids=("address", "object_store_bytes", "runtime_env"),
)
def test_ray_is_started_with_what_each_key_says(started, key, value, asked, found):
    assert started(**{key: value})[asked] == found


def test_a_cluster_that_does_not_answer_is_given_up(monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(StartingCluster, "_connect", lambda starting: over.wait(60))
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    try:
        with (
            pytest.raises(ConfigError, match=r"within 0\.1 seconds"),
            connect(ClusterConf(start_timeout_seconds=0.1), 1) as starting,
        ):
            starting.wait()
    finally:
        over.set()


WATCH = """
import time
from rtrain.cluster.ray_cluster import connect
from rtrain.config.schema import ClusterConf
with connect(ClusterConf(object_store_bytes=80_000_000), 1) as starting:
    cluster = starting.wait()
    print(cluster.is_lost, flush=True)
    while not cluster.is_lost:
        time.sleep(0.05)
    print("lost", flush=True)
print("left", flush=True)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux")
@pytest.mark.parametrize("words", ["raylet/raylet", "gcs/gcs_server"])
def test_a_cluster_of_our_own_that_loses_a_process_of_ray_is_lost(start, words):
    driver = start([sys.executable, "-c", WATCH], stdout=subprocess.PIPE, text=True)
    assert driver.stdout.readline() == "False\n"
    (pid,) = named(driver.pid, words)
    os.kill(pid, signal.SIGKILL)
    assert driver.stdout.readline() == "lost\n"
    began = time.monotonic()
    assert driver.stdout.readline() == "left\n", "rtrain says in its own words what has happened"
    assert time.monotonic() - began < END_SECONDS / 2, "Ray waits for what has ended, and then ends the process"
