"""events.jsonl in a store that can't append to files: in parts during a run, whole at its end."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

from rtrain.runs.events import EVENTS, LINE_BYTES
from rtrain.runs.filesystem.plain_files import open_inside
from rtrain.storage.folders import Folder, chunks_of

PART_BYTES = 256 << 10
"""A part that has grown to this is left alone: an update sends this much again, or less, however long the run."""
_PART = re.compile(rf"{re.escape(EVENTS)}(?:\.(\d+))?")


class EventsCopy:
    """Keeps the copy of one file up to date. Only whole lines are sent, each new one at the next update."""

    def __init__(self, folder: Folder, file: Path) -> None:
        self._folder, self._file = folder, file
        self._begin = 0
        """Where the newest part begins."""
        self._end = 0
        """How much of the file is there."""

    def update(self) -> None:
        """Send the lines that are new: with those of the newest part, or as one more part."""
        begin = self._end if self._end - self._begin >= PART_BYTES else self._begin
        end = _length_of_lines(self._file)
        if end > self._end:
            self._send(begin, end)

    def join(self) -> None:
        """Send the whole file, and delete its parts."""
        if self._file.exists():
            self._send(0, _length_of_lines(self._file))
        for begin in part_begins(self._folder.sizes()):
            if begin:
                self._folder.delete(_part_name(begin))

    def _send(self, begin: int, end: int) -> None:
        with open_inside(self._file.parent, self._file.name) as file:
            file.seek(begin)
            self._folder.put(_part_name(begin), chunks_of(file, end - begin))
        self._begin, self._end = begin, end


def _length_of_lines(file: Path) -> int:
    """Return the bytes of all lines of a file that are complete; 0 if there is no file."""
    if not file.exists():
        return 0
    with open_inside(file.parent, file.name) as stream:
        begin = max(0, stream.seek(0, os.SEEK_END) - LINE_BYTES)
        stream.seek(begin)
        content: bytes = stream.read()
        return begin + content.rfind(b"\n") + 1


def part_begins(names: dict[str, int]) -> list[int]:
    """Return where the parts begin that are among the names of files, in order."""
    found = (_PART.fullmatch(name) for name in names)
    return sorted(int(part[1] or 0) for part in found if part)


def join_parts(folder: Folder, names: dict[str, int], into: BinaryIO) -> None:
    """Add what the parts in a store make up together to a file that holds the beginning of it, or nothing.

    A part that is already in the one before it adds nothing.
    """
    length = into.tell()
    for begin in part_begins(names):
        if begin > length:
            return
        if begin + names[_part_name(begin)] <= length:
            continue
        with folder.open(_part_name(begin)) as part:
            at = begin
            for chunk in chunks_of(part):
                into.write(chunk[max(0, length - at) :])
                at += len(chunk)
        length = max(length, at)


def _part_name(begin: int) -> str:
    return f"{EVENTS}.{begin:015d}" if begin else EVENTS
