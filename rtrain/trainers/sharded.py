"""Checkpoints that every rank writes a part of: complete or absent, and the same for all ranks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rtrain.runs.checkpoints import Writer, complete_checkpoint, reason_of, unwritable, writing


class Savers(Protocol):
    """The ranks as they write checkpoints, maybe in threads beside training, whose exchange they leave alone."""

    def gather(self, value: Any) -> list[Any]:
        """Return what each rank has given, by rank; every rank calls it."""


def write_shards(
    target: Path, write: Writer, facts: Mapping[str, Any], savers: Savers, *, first: bool
) -> dict[str, Any] | None:
    """Write one checkpoint together; every rank calls it.

    Args:
        target: Where it will be.
        write: Writes this rank's part into a folder that all ranks share.
        facts: ``step``, ``epoch``, ``metrics`` and ``score`` of the record.
        savers: All ranks.
        first: This rank makes the folder and gives it its name.

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
            return complete_checkpoint(temporary, target, facts) if first else None


@contextmanager
def _together(savers: Savers, target: Path) -> Iterator[None]:
    """End the block when all ranks have, and fail if that of any does."""
    try:
        yield
    except Exception as error:
        savers.gather(reason_of(error))
        raise
    for reason in filter(None, savers.gather(None)):
        raise unwritable(target, reason)
