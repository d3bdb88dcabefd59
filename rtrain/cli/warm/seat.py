"""A fork of the server that has started a cluster, runs one command, and ends."""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy

from rtrain.cli.warm.client import PASSED_ON
from rtrain.cli.warm.facts import of_terminal
from rtrain.cli.warm.messages import ClosedError, receive, receive_streams, send
from rtrain.cluster import ready_cluster
from rtrain.cluster.prestart import Prestart

POLL_SECONDS = 0.1
START_SECONDS = 60.0
"""How long workers may take to import until a command is taken without them."""


def run(server: socket.socket, folder: str, added: list[str], prestart: Prestart) -> int:
    """Start a cluster, wait for a command, run it, and return its exit code.

    Args:
        server: Sends the command, and closes the connection when none will come.
        folder: Where commands are given, and workers run.
        added: What imports have put before all else in ``sys.path``.
        prestart: The worker processes that the cluster has ready.
    """
    os.setsid()
    os.chdir(folder)
    cluster, deadline = ready_cluster.ReadyCluster(prestart), time.monotonic() + START_SECONDS
    while not (cluster.has_workers or time.monotonic() > deadline or _has_command(server)):
        pass
    try:
        send(server, {"ready": True})
        streams, command = receive_streams(server), receive(server)
    except (ClosedError, OSError):
        ready_cluster.end()
        return 0
    threading.Thread(target=_end_with, args=(server,), name="rtrain-server", daemon=True).start()
    _move(streams, command, added)
    from rtrain.cli import main_in_seat

    try:
        return main_in_seat()
    finally:
        ready_cluster.end()


def _has_command(server: socket.socket) -> bool:
    """Return whether a command, or the end of the server, has come within a moment."""
    return bool(select.select([server], [], [], POLL_SECONDS)[0])


def _end_with(server: socket.socket) -> None:
    """End the command when the server has been killed: no signal would reach it any more."""
    with suppress(ConnectionError):
        server.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _move(streams: list[int], command: Mapping[str, Any], added: list[str]) -> None:
    """Give this process what a new one would have been started with."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        opened = _opened(descriptor, vars(sys)[name])
        vars(sys).update({name: opened, f"__{name}__": opened})
    numpy.random.seed()  # Python has done so with its own generator
    for name in filter(of_terminal, list(os.environ)):
        del os.environ[name]
    os.environ.update({name: value for name, value in command["facts"]["variables"].items() if of_terminal(name)})
    sys.path[:] = [*added, *command["path"]]
    sys.argv = [command["program"], *command["words"]]
    main = types.ModuleType("__main__")  # processes that multiprocessing spawns import it
    main.__file__ = command["program"]
    sys.modules["__main__"] = main
    for number in PASSED_ON:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


def _opened(descriptor: int, before: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a stream of this process, as Python opens it at the start."""
    raw = before.write_through and descriptor != 0  # python -u
    binary = open(descriptor, "rb" if descriptor == 0 else "wb", 0 if raw else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        binary,
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=descriptor == 2 or os.isatty(descriptor),
        write_through=raw,
    )
