"""The Ray cluster of a run: joined, or started for it and shut down after it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtrain.cluster import ready_cluster
from rtrain.cluster.loopback import alone_on_this_machine, token_path
from rtrain.cluster.prestart import Prestart
from rtrain.cluster.quiet import quieten
from rtrain.cluster.ray_servers import RayServers
from rtrain.cluster.ray_session import RaySession, session_root
from rtrain.config.schema import ClusterConf
from rtrain.errors import ConfigError, NotEnoughResourcesError, first_line
from rtrain.process.variables import variables_set

END_SECONDS = 60.0
LOST_SECONDS = 5.0
"""How long the end of a cluster may take of which a process has ended: Ray may ask that one something for a minute."""
WHY_LOST = "Ray's processes were killed, or ran out of memory."
"""What the errors about a lost cluster say first."""
LEFT = "rtrain-ray-left"
"""Name of the thread of a cluster that was closed before it answered."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that answers."""

    own: bool
    """rtrain started it for this run."""
    nodes: tuple[Mapping[str, float], ...]
    """Total resources of each node."""
    shared: bool = False
    """Other runs train there at the same time: each worker has the cores that it reserves, and no more."""
    session: RaySession | None = None
    """Its processes, where this process has started them."""
    servers: RayServers | None = None
    """Those of its processes that this one can't do without."""
    worker_env: Mapping[str, str] = field(default_factory=dict)
    """Variables that all its processes have, but for those that the user's ``cluster.runtime_env`` sets."""

    @property
    def is_lost(self) -> bool:
        """Whether one of Ray's processes has ended that this one depends on."""
        return self.lost is not None

    @property
    def answers(self) -> bool:
        """Whether calls of Ray's return soon."""
        return self.servers is None or self.servers.head_answers

    @property
    def lost(self) -> str | None:
        """What was lost, in words; None: nothing."""
        if self.session is not None:
            return "the Ray cluster of this run" if self.session.is_lost else None
        return None if self.servers is None else self.servers.lost


class StartingCluster:
    """A cluster that starts in the background, hidden behind reading data and importing frameworks.

    Args:
        conf: Which one.
        num_cpus: CPUs of one that is started.
        prestart: Worker processes that it has ready; None: those that Ray starts by itself.

    Raises:
        ConfigError: ``cluster.runtime_env`` says what Ray doesn't take, or what only a cluster that is joined can do.
    """

    def __init__(self, conf: ClusterConf, num_cpus: int, prestart: Prestart | None = None) -> None:
        self._conf, self._num_cpus, self._prestart = conf, num_cpus, prestart
        self._ready, self._over = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._session: RaySession | None = None
        self._cluster: Cluster | None = None
        self._address = conf.address or os.environ.get("RAY_ADDRESS")
        wait_for_left(conf.start_timeout_seconds)
        self._was_connected = "ray" in sys.modules and sys.modules["ray"].is_initialized()
        if self.own:
            _check_own(conf)
        # Ray's processes die with the thread that started them: it stays until the end.
        self._thread = threading.Thread(target=self._live, name="rtrain-ray", daemon=True)
        self._thread.start()

    @property
    def own(self) -> bool:
        """Whether it is started for this run, not joined."""
        return self._address is None and not self._was_connected

    @property
    def _worker_env(self) -> Mapping[str, str]:
        return {} if self._prestart is None or not self.own else self._prestart.worker_env

    def _live(self) -> None:
        quieten()
        if self._address is not None and _has_token():
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        try:
            if not self._was_connected:
                self._connect()
        except BaseException as error:  # handed to wait(), which raises it in the caller's thread
            self._error = error
        finally:
            self._ready.set()
        self._over.wait()
        if self._error is None and self._session is not None:
            self._session.leave()
        if self._error is None and not self._was_connected:
            sys.modules["ray"].shutdown()
        if self._session is not None:
            self._session.close(keep=self._error is not None)  # Ray's logs tell why it did not start

    def _connect(self) -> None:
        _spare_widgets()
        import ray

        common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "job_config": _job_config()}
        with _silenced(logging.getLogger("ray")):
            if self._address is not None:
                ray.init(address=self._address, runtime_env=self._conf.runtime_env or None, **common)
                return
            ready = ready_cluster.taken(self._conf, self._prestart)
            if ready is not None:
                self._session = ready.session
                with alone_on_this_machine():
                    ray.init(address=ready.address, **common)
                return
            self._session = RaySession(session_root())
            # Ray's processes inherit them; in a runtime environment, Ray would write them into its logs.
            variables = {**self._worker_env, **_variables(self._conf)}
            with alone_on_this_machine(), self._session.owning(self._prestart), variables_set(variables):
                ray.init(
                    address="local",
                    num_cpus=self._num_cpus,
                    include_dashboard=False,
                    object_store_memory=self._conf.object_store_bytes,
                    _temp_dir=str(self._session.folder.parent),
                    **common,
                )

    def wait(self) -> Cluster:
        """Return when the cluster answers.

        Raises:
            ConfigError: It doesn't within ``cluster.start_timeout_seconds``, or refuses.
        """
        where = f"the Ray cluster at {self._address}" if self._address else "a local Ray cluster"
        if not self._ready.wait(self._conf.start_timeout_seconds):
            raise ConfigError(
                f"{where} did not answer within {self._conf.start_timeout_seconds:g} seconds.",
                "Check cluster.address, raise cluster.start_timeout_seconds, or train without Ray: num_workers=0",
            )
        if self._error is not None:
            raise ConfigError(
                f"can't connect to {where}: {first_line(self._error)}",
                "Check that it is running and whether it needs a token (RAY_AUTH_TOKEN, or ~/.ray/auth_token). "
                "Without cluster.address, rtrain starts a local one.",
            ) from self._error
        ray = sys.modules["ray"]
        known = ray.nodes()
        nodes = tuple(node["Resources"] for node in known if node["Alive"])
        if not nodes:
            raise NotEnoughResourcesError(f"{where} has no live node.")
        servers = RayServers.of_this_process(known)
        self._cluster = Cluster(self.own, nodes, session=self._session, servers=servers, worker_env=self._worker_env)
        return self._cluster

    def close(self) -> None:
        """Disconnect; shut the cluster down if it is rtrain's own. One that never answered is not waited for."""
        self._over.set()
        if self._ready.is_set():
            is_lost = self._cluster is not None and self._cluster.is_lost
            is_lost = is_lost or (self._session is not None and self._session.is_lost)
            self._thread.join(LOST_SECONDS if is_lost else END_SECONDS)
        else:
            self._thread.name = LEFT


def wait_for_left(timeout_seconds: float) -> None:
    """Wait until no earlier cluster is starting that was closed meanwhile: Ray can start once at a time in a process.

    It would take this process's connection for its own and shut it down.
    """
    for thread in threading.enumerate():
        if thread.name == LEFT:
            thread.join(timeout_seconds)


@contextmanager
def _silenced(logger: logging.Logger) -> Iterator[None]:
    """Keep a library's messages off the terminal while it starts, whatever handlers it takes away meanwhile."""
    logger.propagate = False
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(logging.INFO)
        logger.handlers = [logging.NullHandler()]  # without any, Python prints warnings to the terminal


def _spare_widgets() -> None:
    """Keep Ray from asking a notebook for the packages of displays that rtrain never shows."""
    warnings.filterwarnings("ignore", message="IProgress not found")
    logging.getLogger("ray.widgets.util").setLevel(logging.WARNING)


def _has_token() -> bool:
    """Tell whether Ray would find an authentication token; it looks for one by itself on local addresses only."""
    return "RAY_AUTH_TOKEN" in os.environ or token_path().is_file()


def worker_runtime_env(
    conf: ClusterConf, cluster: Cluster, project_root: str, needed: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the workers' environment: what the trainer needs, and on a joined cluster the user's and the project.

    Workers of a cluster that rtrain started have inherited the user's variables.

    Args:
        conf: The user's.
        cluster: Where the workers will be.
        project_root: Folder whose modules they import; may be empty.
        needed: Environment variables; the user's own win.
    """
    own = _variables(conf)
    missing = {name: value for name, value in needed.items() if name not in own and name not in cluster.worker_env}
    if cluster.own:
        return {"env_vars": missing} if missing else None
    env, variables = _sent(conf.runtime_env), {**missing, **own}
    if "working_dir" not in env:
        paths = filter(None, [project_root, variables.get("PYTHONPATH")])
        variables["PYTHONPATH"] = os.pathsep.join(paths)
    return {**env, "env_vars": variables}


def _sent(runtime_env: Mapping[str, Any]) -> dict[str, Any]:
    """Return a runtime environment whose folders are those that Ray has sent to the cluster when it was joined."""
    import ray

    sent = ray.get_runtime_context().runtime_env
    return {name: sent.get(name, value) for name, value in runtime_env.items()}


def _check_own(conf: ClusterConf) -> None:
    """Find requests that a cluster started by rtrain can't satisfy."""
    _variables(conf)
    others = [name for name in conf.runtime_env if name != "env_vars"]
    if others:
        raise ConfigError(
            f"cluster.runtime_env.{others[0]}: a cluster started by rtrain uses the files and packages of this "
            "machine.",
            "Install what they need here, or join a cluster that Ray prepares: cluster.address=HOST:6379",
        )


def _variables(conf: ClusterConf) -> dict[str, str]:
    """Return the user's environment variables of the workers."""
    given = conf.runtime_env.get("env_vars") or {}
    wrong = None if isinstance(given, Mapping) else "env_vars"
    if wrong is None:
        wrong = next((f"env_vars.{name}" for name, value in given.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise ConfigError(
            f"cluster.runtime_env.{wrong}: environment variables must be a mapping of names to text.",
            "Quote numbers: {env_vars: {NCCL_IB_DISABLE: '1'}}",
        )
    return dict(given)


def is_alive(node: str | None = None) -> bool:
    """Tell whether the cluster has a node, by its id; None for the one that this process is connected through."""
    import ray

    node = node or ray.get_runtime_context().get_node_id()
    return any(one["Alive"] and one["NodeID"] == node for one in ray.nodes())


def resources_by_node() -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return the total and the available resources of each node that is not being taken away, by its id."""
    from ray._private.state import state

    leaving = state.get_draining_nodes()
    total = {node: facts for node, facts in state.total_resources_per_node().items() if node not in leaving}
    available = state.available_resources_per_node()
    return total, {node: available.get(node, {}) for node in total}


def remove_placement_groups(owner: str) -> None:
    """Free what an actor has reserved that died: Ray does it when the whole process of the driver ends.

    Args:
        owner: What the names of its placement groups begin with.
    """
    import ray
    from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group

    for group, facts in placement_group_table().items():
        if facts["name"].startswith(f"{owner}-") and facts["state"] != "REMOVED":
            remove_placement_group(PlacementGroup(ray.PlacementGroupID(bytes.fromhex(group))))


@contextmanager
def connect(conf: ClusterConf, num_cpus: int, prestart: Prestart | None = None) -> Iterator[StartingCluster]:
    """Join the cluster that ``conf`` names, or start one as ``StartingCluster`` does; leave it when the block ends."""
    cluster = StartingCluster(conf, num_cpus, prestart)
    try:
        yield cluster
    finally:
        cluster.close()


class _WorkersPath(list[str]):
    """The folders of the driver's that Ray's workers look for modules in, before all others.

    Ray adds the current folder, whoever may write to it. Here it is one of them only if the driver looks there itself.
    """

    def extend(self, folders: Iterable[str]) -> None:
        own = {Path(one).resolve() for one in sys.path}
        super().extend(one for one in folders if Path(one).resolve() in own)


def _job_config() -> Any:
    from ray.job_config import JobConfig

    config = JobConfig()
    config._py_driver_sys_path = _WorkersPath()
    return config
