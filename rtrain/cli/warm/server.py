"""The process that ``rtrain up`` leaves behind: it has imported what a run needs, and forks a seat for each."""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rtrain.cli.warm import seat
from rtrain.cli.warm.facts import difference, facts, socket_path
from rtrain.cli.warm.imported import Imported
from rtrain.cli.warm.messages import IN_USE, READY, STARTING, ClosedError, receive, receive_streams, send, send_streams
from rtrain.cluster.prestart import Prestart
from rtrain.cluster.scaling import cluster_cpus
from rtrain.config.schema import ScalingConf
from rtrain.trainers.registry import load_trainer
from rtrain.training.preparation import DATA_CPUS

NEEDED = ("rtrain.cli.app", "rtrain.displays.run", "rtrain.training.fit", "rtrain.engine.ray.controller")
"""Modules of every run on a cluster, beyond those of its trainer."""
ASK_SECONDS = 5.0
"""How long a client may take to say what it wants."""


class Server:
    """Waits for commands, and for the end of the one that runs.

    Args:
        listener: Where clients connect.
        here: Facts of this process, as it was started.
        options: What ``rtrain up`` was given.
        prestart: The worker processes of the clusters.
    """

    def __init__(
        self, listener: socket.socket, here: dict[str, Any], options: dict[str, Any], prestart: Prestart
    ) -> None:
        self._listener, self._here, self._options, self._prestart = listener, here, options, prestart
        self._idle_seconds = 60 * options["idle_minutes"]
        self._imported = Imported()
        self._seat, self._to_seat = 0, socket.socket()
        self._client: socket.socket | None = None
        self._used, self._runs = time.monotonic(), 0
        self._is_ready = self._is_busy = self._leaves = False
        self._ended, self._wakeup = socket.socketpair()
        self._ended.setblocking(False)
        self._wakeup.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._leave)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)

    def serve(self) -> Callable[[], int] | None:
        """Answer until no command has come for long enough; return what is to run, in a fork of this process."""
        work = self._fork()
        while work is None and not (self._leaves and not self._is_busy):
            ready = self._wait()
            if not ready:
                self._leaves = True
            if self._to_seat in ready:
                self._read_seat()
            if self._client in ready:
                self._read_client()
            if self._ended in ready and self._is_over() and not self._leaves:
                work = self._fork()
            if work is None and self._listener in ready:
                self._answer()
        if work is None:
            self._end()
        return work

    def _wait(self) -> set[Any]:
        left = max(0.0, self._used + self._idle_seconds - time.monotonic())
        with selectors.DefaultSelector() as selector:
            for one in (self._listener, self._ended, self._client, None if self._is_ready else self._to_seat):
                if one is not None:
                    selector.register(one, selectors.EVENT_READ)
            return {key.fileobj for key, _ in selector.select(left if self._is_ready and not self._is_busy else None)}

    def _read_seat(self) -> None:
        with suppress(ClosedError, OSError):  # SIGCHLD announces its end
            receive(self._to_seat)
        self._is_ready = True
        if not self._is_busy:
            self._used = time.monotonic()

    def _read_client(self) -> None:
        """Pass a signal on to the command; end the command of a client that is gone."""
        assert self._client is not None
        try:
            number = receive(self._client)["signal"]
        except (ClosedError, OSError):
            number = signal.SIGTERM
            self._client.close()
            self._client = None
        with suppress(ProcessLookupError):
            os.kill(self._seat, number)

    def _leave(self, *_: Any) -> None:
        self._leaves = True

    def _fork(self) -> Callable[[], int] | None:
        """Make the next seat; return what it does, in the fork."""
        mine, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            for one in filter(None, (mine, self._listener, self._ended, self._wakeup, self._client)):
                one.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            return lambda: seat.run(theirs, self._here["folder"], self._prestart)
        theirs.close()
        self._seat, self._to_seat, self._is_ready, self._is_busy = pid, mine, False, False
        return None

    def _is_over(self) -> bool:
        """Take note of the end of the seat, and tell its client."""
        with suppress(BlockingIOError):
            self._ended.recv(4096)
        pid, status = os.waitpid(self._seat, os.WNOHANG)
        if pid == 0:
            return False
        self._leaves = self._leaves or not (self._is_ready or self._is_busy)  # the next one would not start either
        self._used, self._is_busy = time.monotonic(), False
        self._to_seat.close()
        if self._client is not None:
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError):
                send(self._client, {"code": code if code >= 0 else 128 - code})
            self._client.close()
            self._client = None
        return True

    def _answer(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(ASK_SECONDS)
        stays = False
        with suppress(ClosedError, OSError):  # a client that has gone
            streams = receive_streams(connection)
            try:
                stays = self._do(connection, streams, receive(connection))
            finally:
                for stream in streams:
                    os.close(stream)
        if not stays:
            connection.close()

    def _do(self, connection: socket.socket, streams: list[int], command: dict[str, Any]) -> bool:
        """Do what a client wants; return whether it stays."""
        if command["question"] != "run":
            self._leaves = self._leaves or command["question"] == "end"
            send(connection, self._status(command))
            return False
        refused = self._refused(command)
        if refused is not None:
            send(connection, {"refused": refused})
            return False
        send_streams(self._to_seat, streams)
        send(self._to_seat, command)
        self._client, self._is_busy, self._runs = connection, True, self._runs + 1
        with suppress(OSError):  # it has gone: _read_client ends the command
            send(connection, {})
        return True

    def _refused(self, command: dict[str, Any]) -> str | None:
        if self._is_busy:
            return "another run uses it"
        if self._leaves:
            return "it is about to end"
        differs = self._differs(command)
        return None if differs is None else f"{differs}; `rtrain up` renews it"

    def _differs(self, command: dict[str, Any]) -> str | None:
        differs = difference(command["facts"], self._here)
        if differs is None and self._imported.has_changed():
            return "installed packages, or imported files, have changed"
        return differs

    def _status(self, command: dict[str, Any]) -> dict[str, Any]:
        state = IN_USE if self._is_busy else READY if self._is_ready else STARTING
        idle = time.monotonic() - self._used
        about = {"process": os.getpid(), "state": state, "idle": idle, "runs": self._runs}
        return about | {"options": self._options, "differs": self._differs(command)}

    def _end(self) -> None:
        self._listener.close()
        self._to_seat.close()
        with suppress(ChildProcessError):  # it is over
            os.waitpid(self._seat, 0)


def main() -> int:
    """Import, listen, and serve, for ``python -m``: the options of ``rtrain up`` as JSON."""
    options, path = json.loads(sys.argv[1]), socket_path()
    assert path is not None, "rtrain up has checked it"
    lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one alone listens there
    os.set_inheritable(lock, False)
    here, modules = facts() | {"folder": options["folder"]}, imported(options["trainer"])
    scaling = ScalingConf(num_workers=options["workers"])
    prestart = Prestart.of_run(scaling, modules, cluster_cpus(scaling, DATA_CPUS))
    listener = listening(path)
    gc.collect()
    gc.freeze()  # pages that forks share stay shared
    work = Server(listener, here, options, prestart).serve()
    if work is not None:
        os.close(lock)
        return work()
    path.unlink(missing_ok=True)
    return 0


def imported(trainer: str) -> tuple[str, ...]:
    """Import what a run with a trainer needs, and return the modules that its workers import."""
    plugin = load_trainer(trainer)
    modules = (*plugin.worker_modules, *plugin.first_step_modules)
    for name in (*NEEDED, *modules):
        importlib.import_module(name)
    return modules


def listening(path: Path) -> socket.socket:
    """Return a socket for clients of this account alone."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)
    try:
        listener.bind(str(path))
    finally:
        os.umask(mask)
    listener.listen()
    return listener


if __name__ == "__main__":
    sys.exit(main())
