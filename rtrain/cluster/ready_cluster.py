"""A cluster that this process has started before it knows which run will use it."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from rtrain.cluster.loopback import alone_on_this_machine
from rtrain.cluster.prestart import Prestart
from rtrain.cluster.quiet import quieten
from rtrain.cluster.ray_session import RaySession, session_root
from rtrain.config.schema import ClusterConf
from rtrain.runs.filesystem.files import current_umask

log = logging.getLogger(__name__)
_ready: list[ReadyCluster] = []
"""The one of this process, until a run takes it."""


class ReadyCluster:
    """A cluster that is started in the background, and that this process has not connected to.

    Args:
        prestart: Its worker processes.
    """

    def __init__(self, prestart: Prestart) -> None:
        self.prestart, self.address = prestart, ""
        self.session: RaySession | None = None
        self._started, self._umask = threading.Event(), current_umask()
        # Ray's processes die with the thread that started them: it stays until the end.
        threading.Thread(target=self._live, name="rtrain-ready", daemon=True).start()
        _ready.append(self)

    def _live(self) -> None:
        try:
            self._start()
        finally:
            self._started.set()
        threading.Event().wait()

    def _start(self) -> None:
        quieten()
        from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
        from ray._private.node import Node
        from ray._private.parameter import RayParams
        from ray._private.worker import enable_token_auth_by_default

        self.session = RaySession(session_root())
        arrivals = self.session.folder / "arrivals"
        arrivals.mkdir()
        self.prestart = replace(self.prestart, arrivals=arrivals)
        with alone_on_this_machine(), self.session.owning(self.prestart):
            enable_token_auth_by_default()
            ensure_token_if_auth_enabled({}, create_token_if_missing=True)
            parameters = RayParams(
                num_cpus=self.prestart.num_cpus,
                include_dashboard=False,
                temp_dir=str(self.session.folder.parent),
                _system_config={},
            )
            node = Node(parameters, head=True, shutdown_at_exit=False, spawn_reaper=False, ray_init_cluster=True)
        self.address = node.address

    @property
    def answers(self) -> bool:
        """Whether it has started, and no process of it has ended."""
        return bool(self.address) and self.session is not None and not self.session.is_lost

    @property
    def has_workers(self) -> bool:
        """Whether its worker processes have imported, or never will."""
        if not self.answers or self.prestart.arrivals is None:
            return self._started.is_set()
        return len(list(self.prestart.arrivals.iterdir())) >= self.prestart.num_processes

    def wait(self) -> None:
        """Wait until it has started, or could not."""
        self._started.wait()

    def is_for(self, conf: ClusterConf, prestart: Prestart | None) -> bool:
        """Return whether it is as one that would be started now: ``run.private`` changes the umask before."""
        same = conf == ClusterConf() and current_umask() == self._umask
        return same and self.answers and prestart is not None and self.prestart.serves(prestart)

    def end(self) -> None:
        """End its processes."""
        self.wait()
        if self.session is not None:
            self.session.close()


def taken(conf: ClusterConf, prestart: Prestart | None) -> ReadyCluster | None:
    """Return the cluster that is ready, if it is as one that would be started now; else it is ended.

    Args:
        conf: The cluster that a run asks for.
        prestart: The worker processes that it would start.
    """
    if not _ready:
        return None
    ready = _ready.pop()
    ready.wait()
    if ready.is_for(conf, prestart):
        return ready
    why = "this run needs other workers, or another cluster" if ready.answers else "its processes have ended"
    ready.end()
    log.warning("the cluster of `rtrain up` is not used: %s", why)
    return None


def end() -> None:
    """End a cluster that no run has taken."""
    for ready in _ready:
        ready.end()
    _ready.clear()
