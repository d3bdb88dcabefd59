"""The streams of the terminal as commands need them: there, and lasting, whatever becomes of who reads them."""

from __future__ import annotations

import codecs
import errno
import io
import logging
import os
import select
import sys
from typing import Any, TextIO

from rtrain.errors import RtrainError
from rtrain.text.printable import printable
from rtrain.text.wrapping import fitted

_lost: dict[int, OSError] = {}
"""Why what was written to a descriptor since has gone nowhere."""
LOG = logging.getLogger("rtrain.process.terminal")
LOG.addHandler(logging.NullHandler())  # without any, Python prints the message: to the terminal


def open_streams() -> None:
    """Open what the process was started without, and let what it writes to go away without ending it.

    A terminal that is closed, a pipe whose reader is gone, or a disk that is full of logs is not a failure of what
    is shown there: from then on it is shown nowhere, and ``logs/driver.log`` of the run says so.
    """
    for descriptor in (0, 1, 2):
        _open(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = lasting(sys.stdout, 1), lasting(sys.stderr, 2)


def check_written() -> None:
    """Check that what a command has printed was written, where that is all it is for: a schema, a config, a list.

    Raises:
        RtrainError: It was not, and not because its reader has had enough, as ``head`` has.
    """
    sys.stdout.flush()
    error = _lost.get(1)
    if error is not None and error.errno != errno.EPIPE:
        raise RtrainError(f"the output can't be written: {error.strerror}.", "The output is incomplete.")


def say(text: str, *, err: bool = False) -> None:
    """Print what a person reads: all that the command line says goes through here, or through ``printable``.

    Long lines are broken between words on a terminal.

    Args:
        text: One or more lines; names and messages in it may come from files of other accounts.
        err: Print it to the standard error.
    """
    stream = sys.stderr if err else sys.stdout
    _write(fitted(printable(text, "\n\t"), stream), stream)


def say_as_it_is(text: str) -> None:
    """Print what may be copied or read by a program, YAML or JSON: its lines stay as long as they are."""
    _write(printable(text, "\n\t"), sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    print(text, file=stream, flush=True)


class Notes(logging.Handler):
    """Shows warnings of rtrain as notes, but those about the terminal itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        if record.name != LOG.name:
            say(f"note: {record.getMessage()}", err=True)


def _open(descriptor: int) -> None:
    """Open a standard stream that is closed: the next file would get its number, and what is printed."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one


def lasting(stream: TextIO | None, descriptor: int) -> TextIO:
    """Return a stream to a descriptor that writing to never fails, in the ways of the one that was there."""
    raw = io.BufferedWriter(_Lasting(descriptor, "wb", closefd=False))
    if stream is None:
        return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
    stream.flush()
    ways: dict[str, Any] = {
        name: getattr(stream, name) for name in ("encoding", "errors", "line_buffering", "write_through")
    }
    ways["errors"] = _FAILING.get(ways["errors"], ways["errors"])
    return io.TextIOWrapper(raw, **ways)


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write what stands for bytes of a file name as these bytes, and other characters that can't be encoded spelled."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


codecs.register_error("rtrain.escaped", _escaped)
_FAILING = {"strict": "backslashreplace", "surrogateescape": "rtrain.escaped"}
"""Ways to write a character that the encoding lacks which may fail, and those that take their place."""


class _Lasting(io.FileIO):
    """Writes to a descriptor, and to nothing once that fails."""

    def write(self, data: Any) -> int:
        try:
            while (written := super().write(data)) is None:  # it was made non-blocking
                select.select([], [self], [])
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            _lost.setdefault(self.fileno(), error)
            LOG.warning("output to descriptor %s is discarded from now on: %s", self.fileno(), error)
            return len(data)
        return written
