"""What processes that were killed have left half written in a folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from rtrain.runs.checkpoints import checkpoints_dir

FILE = re.compile(r"\.(manifest|config|sweep|multirun|command|optimization_results)\.(json|yaml)\.\d+-[0-9a-f]+\.tmp")
"""What only the process that holds the folder's lock writes; others write reports and predictions, maybe now."""
CHECKPOINT = re.compile(r"\..+-[0-9a-f]{6}\.(tmp|old)|\.epoch-\d+-step-\d+\.tmp|\.reached-[0-9a-f-]+")


def leftovers(folder: Path) -> Iterator[Path]:
    """Yield temporary files of a run directory or a sweep, and checkpoints that never got their name."""
    yield from (path for path in folder.iterdir() if FILE.fullmatch(path.name))
    yield from (path for path in checkpoints_dir(folder).glob(".*") if CHECKPOINT.fullmatch(path.name))


def clear_leftovers(folder: Path) -> None:
    """Remove what ``leftovers`` finds.

    For the process that holds the lock, while no process writes a checkpoint.
    """
    for path in leftovers(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
