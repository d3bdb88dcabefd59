"""Whether a run whose record says ``running`` still does."""

from __future__ import annotations

import platform
from pathlib import Path

from rtrain.errors import RtrainError
from rtrain.runs.filesystem.lock import is_locked

KILLED = "killed"
"""Status of a run whose manifest says ``running``, but whose process is gone."""


def is_killed(run_dir: Path, host: object) -> bool:
    """Return whether no process writes a run any more that says it is running; only its own machine knows.

    Args:
        run_dir: The run.
        host: The name of its machine; None: it is not known.
    """
    try:
        return host in (None, platform.node()) and not is_locked(run_dir)
    except (OSError, RtrainError):  # another account's lock, which can't be read
        return False
