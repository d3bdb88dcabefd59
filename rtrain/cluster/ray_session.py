"""The processes and the folder of a Ray cluster that rtrain started: they end with the process that started them.

They are in separate sessions (``setsid``), deaf to the signals that end runs: what is sent to a process group, to
all processes of a job or a service, or by a terminal, reaches the driver alone, which ends the run and then them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from rtrain.cluster import ray_agents, ray_watcher
from rtrain.cluster.prestart import Prestart
from rtrain.process.private_folder import private_folder
from rtrain.runs.filesystem.lock import is_in_place

LOCK_NAME = "rtrain.lock"
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1}
"""Only the driver answers what ends a run."""
END_SECONDS = 20.0
RETRIES = {"RAY_agent_manager_retry_interval_ms": "100"}
"""How often a node asks its agent for runtime environments again, which may only be starting: Ray's own is a second."""


class RaySession:
    """The name and the folder of a cluster, and a small process that ends it when this one is gone.

    Call it in the thread that starts Ray, and lives as long: signals are blocked there.

    Args:
        root: Where the folder is made.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        clear_finished(root)
        self.name = f"session_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}_{os.getpid()}"
        self.folder = root / self.name
        self._lock = _hold(self.folder)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.before_end: list[Callable[[], None]] = []
        """Called before this process leaves the cluster, in the thread that ends it: no signal interrupts them."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # inherited by all that is started from here
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", ray_watcher.__file__, str(self.folder), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._lock],
            start_new_session=True,
            bufsize=0,
        )

    @contextmanager
    def owning(self, prestart: Prestart | None = None) -> Iterator[None]:
        """Make what Ray starts in the block part of this cluster.

        What nothing here needs is left out, since it takes seconds to start and to end, and only ``ray start`` has
        options for some of it: the autoscaler, which has no machines to add, the reader of logs, which has no reader
        itself, and the server of a dashboard that there is not. The node's agents start when they are needed.

        Args:
            prestart: Worker processes that the cluster starts by itself; None: as many as it has CPUs.
        """
        from ray._private import services
        from ray._private.parameter import RayParams

        session, init, popen, serve = self, RayParams.__init__, services.ConsolePopen, services.start_api_server

        def params(self: RayParams, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            self.no_monitor, self.include_log_monitor, self.session_name = True, False, session.name

        class Process(popen):  # type: ignore[misc, valid-type]
            def __init__(self, command: list[str], env: dict[str, str], **kwargs: Any) -> None:
                if prestart is not None:
                    command, env = prestart.in_command(command), {**prestart.variables, **env}
                super().__init__(_with_late_agents(command), env={**RETRIES, **env}, **kwargs, start_new_session=True)
                session._processes.append(self)
                session._tell(str(self.pid))

            def terminate(self) -> None:
                self.kill()  # it is deaf to the other signal

        RayParams.__init__, services.ConsolePopen = params, Process
        services.start_api_server = lambda *_, **__: ("", None)
        try:
            yield
        finally:
            RayParams.__init__, services.ConsolePopen, services.start_api_server = init, popen, serve

    @property
    def is_lost(self) -> bool:
        """Whether one of Ray's own processes has ended: soon after, Ray ends each process that uses the cluster."""
        return any(one.poll() is not None for one in self._processes)

    def leave(self) -> None:
        """Have what uses the cluster in this process end."""
        for end in self.before_end:
            end()

    def close(self, *, keep: bool = False) -> None:
        """End what is left of the processes, and remove the folder, unless ``keep``."""
        if keep:
            self._tell("keep")
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._watcher.wait(END_SECONDS)
        os.close(self._lock)

    def _tell(self, word: str) -> None:
        assert self._watcher.stdin is not None
        with suppress(BrokenPipeError):  # the watcher was killed: Ray's own ways to end its processes are left
            self._watcher.stdin.write(f"{word}\n".encode())


def _with_late_agents(command: Sequence[str]) -> list[str]:
    """Return the command line of one of Ray's processes, in which a node's agents are started by ``ray_agents``."""
    changed = []
    for word in command:
        name, _, agent = word.partition("=")
        kind = name.removeprefix("--").removesuffix("_agent_command")
        if name == f"--{kind}_agent_command":
            ours = subprocess.list2cmdline([sys.executable, "-I", "-S", ray_agents.__file__, kind])
            word = f"{name}={ours} {agent}"
        changed.append(word)
    return changed


def session_root() -> Path:
    """Return where Ray is to keep its logs and sockets: where the user says, or where others can't write.

    Ray lets everybody on the machine write there, so that it lies in a folder of this account's.
    """
    from ray._common.utils import get_default_ray_temp_dir

    if "RAY_TMPDIR" in os.environ:
        return Path(get_default_ray_temp_dir())
    private = private_folder()
    return Path(get_default_ray_temp_dir()) if private is None else private / "ray"


def clear_finished(root: Path) -> None:
    """Remove the folders of this account's sessions that have crashed: no process holds their lock."""
    for folder in root.glob("session_*"):
        with suppress(OSError):  # another process has removed it meanwhile
            if not folder.is_symlink() and folder.lstat().st_uid == os.geteuid():
                _clear_if_finished(folder)


def _clear_if_finished(folder: Path) -> None:
    with _opened(folder / LOCK_NAME, os.O_RDWR) as lock:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it lives
            ray_watcher.remove_folder(folder)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _hold(folder: Path) -> int:
    """Make the folder of a session with a lock that lasts as long as this process or its watcher."""
    while True:
        folder.mkdir(exist_ok=True)
        path = folder / LOCK_NAME
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another process is removing the folder
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_in_place(lock, path):  # another process may have seen the file before it was locked, and removed it
            return lock
        os.close(lock)
