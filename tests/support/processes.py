"""The processes of a run on Ray, found by who started them: none is ever looked for by its name alone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return all processes that ``pid`` has started, directly or not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ProcessLookupError):  # it has ended meanwhile
            continue
    found, new = [], [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def title(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def named(pid: int, words: str) -> list[int]:
    """Return those of the processes started by ``pid`` whose command line holds ``words``."""
    return [one for one in descendants(pid) if words in title(one)]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to each of some processes, as Slurm and systemd do to all of a job or a service."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def alive(pids: Iterable[int]) -> list[int]:
    """Return those of some processes that have not ended."""
    return [pid for pid in pids if _state(pid) not in ("", "Z", "X")]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def until(holds: Callable[[], object], seconds: float = 60) -> bool:
    """Wait for something; return whether it came about in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def fork_ends(child: Callable[[], object]) -> bool:
    """Return whether a fork that runs ``child`` ends by itself within 5 s."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # not pytest's
        signal.alarm(5)
        try:
            child()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
