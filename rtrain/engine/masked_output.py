"""Secrets in output that doesn't pass through Python's streams: logging, C libraries, other processes."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import secrets
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from rtrain.config.secrets.redact import Redactor
from rtrain.config.secrets.urls import MASK
from rtrain.engine import output_filter

DRAIN_SECONDS = 10.0
"""Longest wait for output to reach its place at the end; a terminal may be stopped."""


@contextmanager
def masked_output(redact: Redactor) -> Iterator[None]:
    """Mask, while the block runs, what this process logs, and what it and its children write to descriptors 1 and 2.

    Without secrets nothing is done.
    """
    if not redact.values:
        yield
        return
    with masked_logging(redact):
        detour = _Detour(redact)
        try:
            yield
        finally:
            detour.close()


@contextmanager
def masked_logging(redact: Redactor) -> Iterator[None]:
    """Mask what handlers make of records, whoever has added them: Ray Train writes a separate file."""
    before = logging.Handler.format

    def masked(self: logging.Handler, record: logging.LogRecord) -> str:
        return redact(before(self, record))

    logging.Handler.format = masked  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Handler.format = before  # type: ignore[method-assign]


class _Detour:
    """Leads descriptors 1 and 2 through a process that masks.

    A terminal stays a terminal: the detour is then a pseudo-terminal. Where both descriptors are the same file, both
    take the same way, so that what is written stays in order.
    """

    def __init__(self, redact: Redactor) -> None:
        self._token = f"\0rtrain {secrets.token_hex(8)}\0".encode()
        _flush()
        self._kept = {number: os.dup(number) for number in (1, 2) if _is_open(number)}
        """Copies of the descriptors as they were."""
        facts = {number: os.fstat(number) for number in self._kept}
        files = {number: (one.st_dev, one.st_ino, one.st_rdev) for number, one in facts.items()}
        first = {file: number for number, file in reversed(files.items())}
        self._ends = sorted(first.values())
        ways = {number: _way(number) for number in self._ends}
        self._control, control = socket.socketpair()
        self._process = _start(control.fileno(), {ways[number][0]: self._kept[number] for number in self._ends})
        told = {"secrets": redact.forms, "token": self._token.decode(), "mask": MASK}
        self._control.sendall(json.dumps(told).encode() + b"\n")
        for number, file in files.items():
            os.dup2(ways[first[file]][1], number)
        for end in (control.detach(), *(end for way in ways.values() for end in way)):
            os.close(end)

    def close(self) -> None:
        """Wait until what was written is through, and put the descriptors back."""
        _flush()
        with suppress(OSError):  # the process that masks was ended: nothing is on its way
            for number in self._ends:
                os.write(number, self._token)
            for _ in self._ends:
                if select.select([self._control], [], [], DRAIN_SECONDS)[0]:
                    self._control.recv(1)
        for number, kept in self._kept.items():
            os.dup2(kept, number)
            os.close(kept)
        self._control.close()
        # It ends when the last process that writes through it does, which may be a child of user code.
        threading.Thread(target=self._process.wait, daemon=True).start()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _start(control: int, pairs: Mapping[int, int]) -> subprocess.Popen[bytes]:
    """Start the process that masks what comes from the first descriptor of each pair on its way to the second."""
    words = [str(control), *(f"{source}:{to}" for source, to in pairs.items())]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", output_filter.__file__, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[control, *pairs, *pairs.values()],
        start_new_session=True,  # Ctrl-C is not for it
    )


def _way(number: int) -> tuple[int, int]:
    """Return the two ends of a way that looks like the descriptor: where it is read, and where it is written."""
    if not os.isatty(number):
        return os.pipe()
    import fcntl
    import termios

    source, end = os.openpty()
    settings = termios.tcgetattr(number)
    settings[1] &= ~termios.OPOST  # the terminal itself does that
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(end, termios.TCSANOW, settings)
    fcntl.ioctl(end, termios.TIOCSWINSZ, fcntl.ioctl(number, termios.TIOCGWINSZ, b"\0" * 8))
    return source, end


def _flush() -> None:
    """Have the streams of Python and of C write what they hold."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with suppress(OSError, ValueError):  # the next write to it raises
                stream.flush()
    ctypes.CDLL(None).fflush(None)
