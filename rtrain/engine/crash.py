"""What is left of a process that crashes in code outside of Python: the stack of its threads, and whose line it was."""

from __future__ import annotations

import faulthandler
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from rtrain.config.diagnostics.own_lines import lines_of, places_in
from rtrain.runs.filesystem.files import unshare
from rtrain.runs.filesystem.plain_files import open_inside, read_text

_FATAL = re.compile(r"^Fatal Python error: (.+)$", re.MULTILINE)
HINT = "Native code crashed: ctypes, a C extension, or a library that is incompatible with another one's version."


@dataclass(frozen=True, kw_only=True)
class Crash:
    """What a crash has written."""

    what: str
    """The system's word, e.g. ``Segmentation fault``."""
    frames: dict[str, Any]
    """Where it happened, as ``own_lines`` says it."""
    path: Path
    """The file with the stack of every thread."""

    @property
    def place(self) -> str:
        """The line that crashed, if it is known, e.g. `` in model.py:7``."""
        lines = self.frames["lines"]
        return f" in {Path(lines[0]['file']).name}:{lines[0]['line']}" if lines else ""


@contextmanager
def crash_log(run_dir: Path, rank: int) -> Iterator[None]:
    """Have this process write the stacks of its threads to ``logs/worker-<rank>.crash.txt`` if it crashes.

    The file is there while the block runs, and afterwards if it crashed.
    """
    path = _path(run_dir, rank)
    unshare(run_dir, f"logs/{path.name}")
    was_enabled = faulthandler.is_enabled()
    with open_inside(run_dir, f"logs/{path.name}", "w") as file:
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()
            if was_enabled and sys.__stderr__ is not None:
                with suppress(OSError, ValueError):  # a stream that no file stands behind
                    faulthandler.enable(sys.__stderr__)
            if path.exists() and not path.stat().st_size:
                path.unlink()


def read_crash(run_dir: Path, rank: int) -> Crash | None:
    """Return what the newest crash of a worker has written; None if it did not crash."""
    try:
        text = read_text(run_dir, f"logs/{_path(run_dir, rank).name}")
    except (OSError, ValueError):
        return None
    fatal = _FATAL.search(text)
    if fatal is None:
        return None
    threads = text[fatal.end() :].split("\n\n")
    current = [one for one in threads if one.startswith("Current thread")] or threads
    places = places_in("\n".join(current[:1]))
    inside = [*takewhile(lambda place: place[2] != "run_worker", places)]
    return Crash(what=fatal[1], frames=lines_of(inside), path=_path(run_dir, rank))


def _path(run_dir: Path, rank: int) -> Path:
    return run_dir / "logs" / f"worker-{rank}.crash.txt"
