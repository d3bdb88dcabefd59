"""A fork of the server that has started a cluster, runs one command, and ends."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import types
from collections.abc import Mapping
from typing import Any

from rtrain.cli.warm.client import PASSED_ON
from rtrain.cli.warm.facts import of_terminal
from rtrain.cli.warm.messages import ClosedError, receive, receive_streams, send
from rtrain.cluster import ready_cluster
from rtrain.cluster.prestart import Prestart

POLL_SECONDS = 0.1


def run(server: socket.socket, folder: str, prestart: Prestart) -> int:
    """Start a cluster, wait for a command, run it, and return its exit code.

    Args:
        server: Sends the command, and closes the connection when none will come.
        folder: Where commands are given, and workers run.
        prestart: The worker processes that the cluster has ready.
    """
    os.setsid()
    os.chdir(folder)
    cluster = ready_cluster.ReadyCluster(prestart)
    while not cluster.has_workers and not select.select([server], [], [], POLL_SECONDS)[0]:
        pass
    try:
        send(server, {"ready": True})
        streams, command = receive_streams(server), receive(server)
    except (ClosedError, OSError):
        ready_cluster.end()
        return 0
    threading.Thread(target=_end_with, args=(server,), name="rtrain-server", daemon=True).start()
    _move(streams, command)
    from rtrain.cli import main_in_seat

    try:
        return main_in_seat()
    finally:
        ready_cluster.end()


def _end_with(server: socket.socket) -> None:
    """End the command when the server has been killed: no signal would reach it any more."""
    server.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _move(streams: list[int], command: Mapping[str, Any]) -> None:
    """Give this process what a new one would have been started with."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, encoding=sys.stdin.encoding, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=sys.stderr.encoding, errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    for name in filter(of_terminal, list(os.environ)):
        del os.environ[name]
    os.environ.update({name: value for name, value in command["facts"]["variables"].items() if of_terminal(name)})
    sys.path[:] = command["path"]
    sys.argv = [command["program"], *command["words"]]
    main = types.ModuleType("__main__")  # processes that multiprocessing spawns import it
    main.__file__ = command["program"]
    sys.modules["__main__"] = main
    for number in PASSED_ON:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
