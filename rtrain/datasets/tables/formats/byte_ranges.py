"""Ranges of bytes of a large text file that hold whole rows, so that each can be read by itself."""

from __future__ import annotations

import io
import itertools
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from rtrain.config.files.data_files import COMPRESSED, NOT_UNPACKED

PIECE_BYTES = 16 << 20
"""About how long a range is."""
LOOK_BYTES = 1 << 16
"""Text at the beginning of a range that must not be blank."""
BREAK = re.compile(rb"\r\n|\r|\n")
"""What ends a line."""


class ByteRange(NamedTuple):
    """Some rows of a text file."""

    file: str
    begin: int
    end: int | None
    """The byte to end before; None: the end that the file has when it is read."""
    block_bytes: int
    """How much text pyarrow's reader parses in one go, counted from the beginning of the file."""
    schema: pa.Schema
    """The columns, with the types that the beginning of the file suggests."""

    def open(self) -> Any:
        """Return the bytes for pyarrow, in the blocks that it would read the whole file in."""
        return pa.PythonFile(_Blocks(self), mode="r")


def is_large(file: Path) -> bool:
    """Return whether a file is long enough to be cut, and not compressed."""
    return file.suffix not in (*COMPRESSED, *NOT_UNPACKED) and file.stat().st_size > PIECE_BYTES


def ranges_of(file: Path, block_bytes: int, schema: pa.Schema, is_row: Callable[[bytes], bool]) -> list[ByteRange]:
    """Return the ranges of a file in their order.

    They depend on nothing but the file: a pass over its rows has the same order wherever it is resumed.

    Args:
        file: The file.
        block_bytes: Size of the blocks in which it is parsed; a row can't be longer.
        schema: Of its columns.
        is_row: Whether a line is a whole row, as far as it shows.
    """
    step = block_bytes * max(1, PIECE_BYTES // block_bytes)
    inner = dict[int, None]()
    with file.open("rb") as stream:
        size = stream.seek(0, io.SEEK_END)
        for place in range(step, size, step):
            blocks = range(place, min(place + step, size), block_bytes)
            found = (_border(stream, block, block_bytes, is_row) for block in blocks)
            inner |= dict.fromkeys(itertools.islice((one for one in found if one is not None), 1))
    return [
        ByteRange(str(file), begin, end, block_bytes, schema)
        for begin, end in zip([0, *inner], [*inner, None], strict=True)
    ]


def _border(stream: BinaryIO, place: int, block_bytes: int, is_row: Callable[[bytes], bool]) -> int | None:
    """Return where a row begins near ``place``, where a block does; None if that is not sure.

    A line that looks like a row may be part of a quoted value, but then its range can't be read: a row that begins in
    one block ends at the first line break of the next one, or pyarrow's reader fails.
    """
    stream.seek(place - block_bytes)
    before = stream.read(block_bytes)
    if before.endswith((b"\n", b"\r")):
        border = None if b'"' in before else place  # a value that begins earlier would be longer than a block
    else:
        rest = stream.readline(block_bytes)
        end = BREAK.search(rest)
        line = before[max(before.rfind(b"\n"), before.rfind(b"\r")) + 1 :] + rest[: end.start() if end else None]
        border = place + end.end() if end and is_row(line) else None
    return border if border is not None and _begins_with_row(stream, border) else None


def _begins_with_row(stream: BinaryIO, place: int) -> bool:
    """Return whether a row comes soon; at the beginning of a text, a byte order mark would be left out."""
    stream.seek(place)
    text = stream.read(LOOK_BYTES)
    return bool(text.strip()) and not text.startswith(BOM_UTF8)


class _Blocks(io.RawIOBase):
    """The bytes of a range, read to the end of a block of the file at a time.

    A line break follows, as a block by itself: a reader refuses a row that is not complete before its last block.
    """

    def __init__(self, part: ByteRange) -> None:
        self._file = io.BufferedReader(io.FileIO(part.file))
        self._place = self._file.seek(part.begin)
        self._end, self._block_bytes = part.end, part.block_bytes
        self._last = b"" if part.end is None else b"\n"

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the rest of a block, at most ``size`` bytes of it; nothing at the end."""
        left = self._block_bytes - self._place % self._block_bytes
        left = left if self._end is None else min(left, self._end - self._place)
        found = self._file.read(left if size < 0 else min(size, left))
        self._place += len(found)
        if not found:
            found, self._last = self._last, b""
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
