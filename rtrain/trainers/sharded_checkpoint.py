"""Checkpoints that every rank writes a part of: complete or absent, and the same for all ranks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rtrain.runs.checkpoints import Writer, complete_checkpoint, reason_of, unwritable, writing

PATIENCE_SECONDS = 60.0
"""How long the first rank waits for files that another one has written; file systems of networks show them late."""
PAUSE_SECONDS = 0.2


class CheckpointGroup(Protocol):
    """The ranks as they write checkpoints, possibly in threads; their exchange is separate from that of training."""

    def gather(self, value: Any) -> list[Any]:
        """Return what each rank has given, by rank; every rank calls it."""


def write_shards(
    target: Path,
    write: Writer,
    facts: Mapping[str, Any],
    savers: CheckpointGroup,
    *,
    first: bool,
    signing_key: str = "",
) -> dict[str, Any] | None:
    """Write one checkpoint together; every rank calls it.

    Args:
        target: Where it will be.
        write: Writes this rank's part into a folder that all ranks share.
        facts: ``step``, ``epoch``, ``metrics`` and ``score`` of the record.
        savers: All ranks.
        first: This rank makes the folder and gives it its name.
        signing_key: Signs the list of files; empty: it is not signed.

    Returns:
        The record, on the first rank.

    Raises:
        CheckpointError: A part can't be written; on all ranks.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    with writing(target, temporary if first else None):
        with _together(savers, target):
            if first:
                # What a killed attempt left behind must not get into this checkpoint.
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir(parents=True)
        with _together(savers, target):
            write(temporary)
        with _together(savers, target):
            here = sizes_below(temporary)
        seen = savers.gather(here)
        with _together(savers, target):
            if first:
                _wait_for(temporary, seen)
            return complete_checkpoint(temporary, target, facts, signing_key) if first else None


def sizes_below(folder: Path) -> dict[str, int]:
    """Return the bytes of every file in a folder, however deep, by its name there, as this machine sees them."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _wait_for(folder: Path, seen: list[dict[str, int]]) -> None:
    """Wait until this machine sees what any rank does, each of which sees what it wrote: NFS shows files late.

    Raises:
        CheckpointError: Some files don't come.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while lacking := _lacking(sizes_below(folder), seen):
        if time.monotonic() > until:
            raise unwritable(folder, f"{len(lacking)} files written by other workers are missing: {lacking[0]}")
        time.sleep(PAUSE_SECONDS)


def _lacking(here: Mapping[str, int], seen: list[dict[str, int]]) -> list[str]:
    written: dict[str, int] = {}
    for one in seen:
        # Of what another rank wrote, a rank may see less than there is.
        written |= {name: max(size, written.get(name, 0)) for name, size in one.items()}
    return sorted(name for name, size in written.items() if here.get(name) != size)


@contextmanager
def _together(savers: CheckpointGroup, target: Path) -> Iterator[None]:
    """End the block when all ranks have, and fail if that of any does."""
    try:
        yield
    except Exception as error:
        savers.gather(reason_of(error, target.parent))
        raise
    for reason in filter(None, savers.gather(None)):
        raise unwritable(target, reason)
