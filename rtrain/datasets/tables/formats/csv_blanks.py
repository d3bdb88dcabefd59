"""CSV text without the blanks that values begin with, as pyarrow's reader gets it."""

from __future__ import annotations

import csv
import io
from typing import Any

BLOCK_BYTES = 1 << 20


class SkippedBlanks(io.RawIOBase):
    """A stream of text whose values don't begin with blanks, so that quotes do.

    Args:
        stream: Decompressed text; a line is a row.
        delimiter: Between two values.
    """

    def __init__(self, stream: Any, delimiter: str) -> None:
        self._stream, self._delimiter = stream, delimiter
        self._rest, self._ready = b"", b""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or all; nothing at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(BLOCK_BYTES), b""))
        while not self._ready and (block := self._stream.read(BLOCK_BYTES)):
            lines, newline, self._rest = (self._rest + block).rpartition(b"\n")
            self._ready = self._skipped(lines + newline)
        if not self._ready:
            self._ready, self._rest = self._skipped(self._rest), b""
        found, self._ready = self._ready[:size], self._ready[size:]
        return found

    def _skipped(self, lines: bytes) -> bytes:
        if b" " not in lines:
            return lines
        if b'"' in lines:
            return self._written_again(lines)
        lines = lines.lstrip(b" ")
        for sign in (self._delimiter.encode(), b"\n"):
            while sign + b" " in lines:
                lines = lines.replace(sign + b" ", sign)
        return lines

    def _written_again(self, lines: bytes) -> bytes:
        text, found = (
            io.StringIO(lines.decode("latin1"), newline=""),
            io.StringIO(newline=""),
        )  # any byte is a sign there
        rows = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True)
        try:
            csv.writer(found, delimiter=self._delimiter, lineterminator="\n").writerows(rows)
        except csv.Error as error:
            raise OSError(str(error)) from error  # as of other files that can't be read
        return found.getvalue().encode("latin1")
