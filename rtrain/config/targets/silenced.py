"""What libraries print while they are asked what they have, or what they take: the answer says it all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def silenced() -> Iterator[None]:
    """Send what is printed while the block runs to nowhere, past Python's streams too."""
    _flush()
    kept: dict[int, int] = {}
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            kept[number] = os.dup(number)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        _flush()
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
            stream.flush()
