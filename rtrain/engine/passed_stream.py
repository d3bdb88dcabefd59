"""A stream of text that passes on what it is asked to another one."""

from __future__ import annotations

from io import TextIOBase
from typing import TextIO


class PassedStream(TextIOBase):
    """Looks like another stream; what becomes of a text is for ``write`` to say.

    Args:
        stream: The other one.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    @property
    def closed(self) -> bool:
        return self._stream.closed

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # as in every stream of Python's
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors
