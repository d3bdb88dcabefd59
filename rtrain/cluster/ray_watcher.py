"""Ends the processes of a Ray cluster, and removes its folder, as soon as the process that started both is gone.

Run as a script, without the packages of the environment: FOLDER, the process id of the driver, and on stdin the ids of
the sessions (``setsid``) to end, one a line. ``keep`` in place of one leaves the folder.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 0.5
LONGEST_SECONDS = 10.0
SID, START = 3, 19
"""Columns of ``/proc/<pid>/stat`` behind the name: the session, and when the process was started."""


def watch(folder: Path, driver: int) -> None:
    """Wait until the process ``driver`` has closed stdin or is gone, then end all that it has announced."""
    announced = b""
    # A fork of the driver may hold the other end of the pipe open.
    while os.getppid() == driver:
        if select.select([0], [], [], POLL_SECONDS)[0]:
            received = os.read(0, 4096)
            if not received:
                break
            announced += received
    while select.select([0], [], [], 0)[0] and (received := os.read(0, 4096)):
        announced += received
    words = announced.decode().split()
    end_sessions({int(word) for word in words if word.isdigit()})
    if "keep" not in words:
        remove_folder(folder)


def end_sessions(sessions: set[int]) -> None:
    """Kill every process of some sessions, and wait until they are gone."""
    for session in sessions:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)
    deadline = time.monotonic() + LONGEST_SECONDS
    while (left := list(members(sessions))) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def members(sessions: set[int]) -> Iterator[int]:
    """Yield the processes that belong to sessions, where the system lists processes."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            state, *columns = stat.read_text().rpartition(")")[2].split()
            if int(columns[SID - 1]) in sessions and state not in "ZX":
                yield int(stat.parent.name)


def remove_folder(folder: Path) -> None:
    """Remove the folder of a session, and Ray's link to the newest one if it leads nowhere: Ray won't replace it."""
    shutil.rmtree(folder, ignore_errors=True)
    link = folder.with_name("session_latest")
    with suppress(OSError):
        if link.is_symlink() and not link.exists():
            link.unlink()


def main(arguments: Sequence[str]) -> None:
    """Watch, whatever signals come."""
    folder, driver = arguments
    watch(Path(folder), int(driver))


if __name__ == "__main__":
    main(sys.argv[1:])
