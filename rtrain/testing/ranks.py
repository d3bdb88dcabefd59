"""Processes that are the ranks of one world, without Ray: started once, because imports take seconds."""

from __future__ import annotations

import os
import socket
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import Any

TIMEOUT_SECONDS = 120


class RankProcesses:
    """The processes.

    Args:
        join: Called in each process before anything else, with its rank and an address for each of them; a function of
            a module.
        size: How many there are.
    """

    def __init__(self, join: Callable[[int, list[str]], None], size: int = 2) -> None:
        context, addresses = get_context("spawn"), [_free_address() for _ in range(size)]
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        for rank in range(size):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, join, rank, addresses), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Call ``function(rank, *args, **kwargs)`` on all ranks and return their results."""
        for pipe in self._pipes:
            pipe.send((function, args, kwargs))
        results = []
        for pipe in self._pipes:
            assert pipe.poll(TIMEOUT_SECONDS), "a rank hangs"
            results.append(pipe.recv())
        for error, _ in results:
            assert error is None, error
        return [value for _, value in results]

    def close(self) -> None:
        """End the processes, whatever they do."""
        for pipe in self._pipes:
            with suppress(BrokenPipeError):  # a test has killed it
                pipe.send(None)
        for process in self._processes:
            process.join(10)
            process.kill()


def _free_address() -> str:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return f"localhost:{free.getsockname()[1]}"


def _serve(pipe: Any, join: Callable[[int, list[str]], None], rank: int, addresses: list[str]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    join(rank, addresses)
    while (job := pipe.recv()) is not None:
        function, args, kwargs = job
        try:
            pipe.send((None, function(rank, *args, **kwargs)))
        except BaseException:
            pipe.send((traceback.format_exc(), None))


def _end_with_parent() -> None:
    """End this process when the tests are gone, also one that waits for another rank."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
