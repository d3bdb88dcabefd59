"""Run the user's code for a look: this thread connects to nothing, prints nothing and draws no random numbers."""

from __future__ import annotations

import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from rtrain.engine.passed_stream import PassedStream
from rtrain.trainers.loops.seeding import kept_random_numbers


@dataclass
class Look:
    """What the block tried to do."""

    connects: bool = False
    """Whether it asked for a connection, to fetch something."""


@contextmanager
def looking() -> Iterator[Look]:
    """Run the block without connections, output and warnings, and restore the random state afterwards.

    Other threads, which may start Ray or draw a display, are not affected.
    """
    look = Look()
    with _unconnected(look), _silent(), kept_random_numbers(), warnings.catch_warnings(action="ignore"):
        yield look


@contextmanager
def _unconnected(look: Look) -> Iterator[None]:
    thread = threading.get_ident()

    def refusing(function: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return function(*args, **kwargs)
            look.connects = True
            raise ConnectionRefusedError("nothing is downloaded before the start")

        return called

    connect, lookup = refusing(socket.socket.connect), refusing(socket.getaddrinfo)
    with _replaced(socket.socket, "connect", connect), _replaced(socket, "getaddrinfo", lookup):
        yield


@contextmanager
def _silent() -> Iterator[None]:
    with _replaced(sys, "stdout", _Silent(sys.stdout)), _replaced(sys, "stderr", _Silent(sys.stderr)):
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    inherited, before = name not in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


class _Silent(PassedStream):
    """A stream that leaves out what the thread writes that made it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)
