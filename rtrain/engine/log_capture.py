"""What user code prints: to its log file in the run directory, and on to where it would have gone."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rtrain.config.diagnostics.own_lines import own_lines
from rtrain.config.secrets.redact import Redactor
from rtrain.config.secrets.urls import MASK
from rtrain.engine.masked_output import masked_logging, masked_output
from rtrain.engine.output_filter import Masking
from rtrain.engine.passed_stream import PassedStream
from rtrain.errors import MOST_OF_TRACEBACK, RtrainError, in_brief, said_by, shortened
from rtrain.runs.filesystem.fork_locks import fork_safe_lock
from rtrain.runs.records import FailureRecord, LogRecord, RunRecord
from rtrain.trainers.known_errors import is_of_code
from rtrain.trainers.liveness import Life

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

SCRUBS_NOTHING = Redactor()
LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders that installed libraries are in."""
_NOW = threading.local()
"""What this thread does: ``library_logs``."""
END = b"\0rtrain ends\0"
"""Of a stream; no text holds it."""


class _Tee(PassedStream):
    """Writes to a stream and hands the same text to a function, both without secrets.

    The end of a text that may be the beginning of a secret waits for what follows it: in the stream until a flush.

    Args:
        stream: The stream.
        also: The function.
        redact: Takes secrets out.
        shows: The stream gets it; else it is only what the stream looks like.
    """

    def __init__(self, stream: TextIO, also: Callable[[str], None], redact: Redactor, *, shows: bool = True) -> None:
        super().__init__(stream)
        self._also = also
        self._write: Callable[[str], object] = stream.write if shows else lambda _: None
        forms = [form.encode(errors="surrogatepass") for form in redact.forms]
        self._maskings = [Masking(forms, END, MASK.encode()) for _ in range(2)] if forms else []
        self._lock = fork_safe_lock()

    def write(self, text: str) -> int:
        data = text.encode(errors="surrogatepass")
        with self._lock:  # threads of user code print, too
            for_also, for_stream = [one.feed(data)[0] for one in self._maskings] or [data, data]
            self._hand_on(self._also, for_also)
            self._hand_on(self._write, for_stream)
        return len(text)

    def end(self) -> None:
        """Hand on what waits."""
        for masking, to in zip(self._maskings, (self._also, self._write), strict=False):
            self._hand_on(to, masking.rest())

    def flush(self) -> None:
        with self._lock:
            for masking in self._maskings[1:]:
                self._hand_on(self._write, masking.rest())
        super().flush()

    @staticmethod
    def _hand_on(to: Callable[[str], object], text: bytes) -> None:
        if text:
            to(text.decode(errors="surrogatepass"))

    @property
    def buffer(self) -> BufferedIOBase:
        return _Bytes(self)


class _Bytes(BufferedIOBase):
    """Writes bytes to a stream of text."""

    def __init__(self, stream: _Tee) -> None:
        self._stream = stream

    def write(self, data: Buffer) -> int:
        written = bytes(data)
        self._stream.write(written.decode(errors="replace"))
        return len(written)

    def flush(self) -> None:
        self._stream.flush()


@contextmanager
def masked_streams(redact: Redactor) -> Iterator[None]:
    """Mask what this process prints and logs while the block runs: modules of user code are imported in it."""
    if not redact.values:
        yield
        return
    with _streams(lambda _: None, redact), masked_logging(redact):
        yield


@contextmanager
def _streams(also: Callable[[str], None], redact: Redactor, *, shows: bool = True) -> Iterator[None]:
    before = sys.stdout, sys.stderr
    tees = [_Tee(stream, also, redact, shows=shows) for stream in before]
    sys.stdout, sys.stderr = tees
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for tee in tees:
            tee.end()


@contextmanager
def copied_output(
    rank: int,
    send: Callable[[RunRecord], None],
    redact: Redactor = SCRUBS_NOTHING,
    life: Life | None = None,
    *,
    shows: bool = True,
) -> Iterator[None]:
    """Copy stdout and stderr of this process into ``LogRecord``s while the block runs.

    An exception that leaves the block is recorded with its traceback as a ``FailureRecord`` first, and raised again.

    Args:
        rank: Of this worker.
        send: Takes the records.
        redact: Takes secrets out of all of it.
        life: Knows how far the worker is.
        shows: Also write the output to the original streams.
    """

    def log(text: str) -> None:
        send(LogRecord(rank=rank, text=text, printed=not getattr(_NOW, "library_logs", False)))

    with _streams(log, redact, shows=shows), redact.cleaning():
        try:
            with masked_output(redact):
                yield
        except BaseException as error:  # user code may raise CancelledError, SystemExit or a class that it defines
            text = redact("".join(traceback.format_exception(error)))
            send(LogRecord(rank=rank, text=text, printed=False))
            send(replace(_failure(rank, error, text, redact), step=None if life is None else life.step))
            raise


@contextmanager
def library_news_unshown() -> Iterator[None]:
    """Have messages of installed libraries below WARNING count as not printed while the block runs.

    Python leaves them out by itself; Ray Train's handler on its workers writes them to stderr.
    """
    handlers = [one for one in logging.getLogger().handlers if isinstance(one, logging.StreamHandler)]
    for handler in handlers:
        handler.emit = partial(_emit, handler.emit)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for handler in handlers:
            del handler.emit


def _emit(emit: Callable[[logging.LogRecord], None], record: logging.LogRecord) -> None:
    _NOW.library_logs = record.levelno < logging.WARNING and not LIBRARIES.isdisjoint(Path(record.pathname).parts)
    try:
        emit(record)
    finally:
        _NOW.library_logs = False


def _failure(rank: int, error: BaseException, text: str, redact: Redactor) -> FailureRecord:
    frames = own_lines(error, redact)
    return FailureRecord(
        rank=rank,
        type=type(error).__name__,
        message=in_brief(redact(said_by(error))),
        time=time.time(),
        traceback=shortened(text, MOST_OF_TRACEBACK),
        mistake=isinstance(error, RtrainError),
        bug=frames["own"] and is_of_code(error),
        frames=frames,
    )
