"""What somebody may put in the place of a file: pipes, sockets, devices, links, folders; and a guard."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

KINDS = ("fifo", "socket", "zero", "link", "loop", "folder")
HANG_SECONDS = 5
"""What takes longer reads what never ends; everything here takes milliseconds."""


def put_strange(place: Path, kind: str, victim: Path) -> bool:
    """Replace a file or folder; return whether it was a folder.

    Args:
        place: What is replaced.
        kind: One of ``KINDS``.
        victim: A folder that holds ``secret.txt``, for links to lead to.
    """
    is_folder = place.is_dir()
    if is_folder:
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "socket":
        _bind(place)
    elif kind == "zero":
        place.symlink_to("/dev/zero")
    elif kind == "link":
        place.symlink_to(victim if is_folder else victim / "secret.txt")
    elif kind == "loop":
        place.symlink_to(place)
    elif is_folder:
        place.write_text("a file where a folder should be")
    else:
        place.mkdir()
    return is_folder


def _bind(place: Path) -> None:
    """Make a socket file; its address may have 107 bytes, which the path of a test exceeds."""
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{folder}/{place.name}")
    finally:
        os.close(folder)


@contextmanager
def guarded() -> Iterator[None]:
    """Fail where the block reads what never comes, or never ends."""

    def give_up(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"it hangs: no end after {HANG_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
