"""Tags and a note that the user gives a run or a sweep afterwards: ``labels.json`` next to its manifest.

They have a separate file so that they neither race the driver, which replaces the manifest, nor change signed text.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rtrain.errors import RunDirError, StrangeFileError
from rtrain.runs.filesystem.files import named_errors, private_files, to_json, write_atomic
from rtrain.runs.filesystem.plain_files import read_json

LABELS = "labels.json"


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What the user wrote on a run."""

    tags: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Tags of the config (``run.tags``) that were taken off."""
    note: str | None = field(default=None)
    """Replaces ``run.notes`` of the config, unless it is None."""

    def tags_with(self, configured: Sequence[str]) -> list[str]:
        """Return all tags of a run: those of its config that were not removed, then those that were added."""
        return list(dict.fromkeys([*(one for one in configured if one not in self.removed), *self.tags]))

    def tagged(self, added: Sequence[str] = (), removed: Sequence[str] = ()) -> Labels:
        """Return the labels with other tags."""
        tags = [one for one in dict.fromkeys([*self.tags, *added]) if one not in removed]
        gone = [one for one in dict.fromkeys([*self.removed, *removed]) if one not in added]
        return replace(self, tags=tuple(tags), removed=tuple(gone))

    def noted(self, note: str) -> Labels:
        """Return the labels with a note in place of the one before."""
        return replace(self, note=note)

    def as_text(self) -> str:
        """Return what a file of labels holds."""
        return to_json(asdict(self), indent=2) + "\n"


def read_labels(folder: Path) -> Labels:
    """Return the labels of a run directory or a sweep; those of a file that can't be read are none."""
    try:
        return labels_of(read_json(folder, LABELS))
    except (OSError, ValueError, TypeError):
        return Labels()


def labels_of(stored: Any) -> Labels:
    """Return what was read of a file of labels.

    Raises:
        TypeError: It holds something else.
    """
    if not isinstance(stored, Mapping):
        raise TypeError("labels must be a mapping")
    lists = [stored.get(name) or [] for name in ("tags", "removed")]
    if not all(isinstance(one, list) for one in lists):
        raise TypeError("tags must be a list")
    tags, removed = (tuple(map(str, one)) for one in lists)
    note = stored.get("note")
    return Labels(tags=tags, removed=removed, note=None if note is None else str(note))


def labels_to_change(read: Callable[[], Any], where: str) -> Labels:
    """Return the labels that are about to be replaced.

    Args:
        read: Returns what the file holds.
        where: Its folder.

    Raises:
        RunDirError: The file can't be read, and what it holds would be lost.
    """
    try:
        return labels_of(read())
    except (FileNotFoundError, StrangeFileError):  # a link, say, is replaced and not followed
        return Labels()
    except (ValueError, TypeError) as error:
        raise RunDirError(f"{where}/{LABELS} can't be read: {error}.", "Correct it, or delete it.") from error


def change_labels(folder: Path, change: Callable[[Labels], Labels]) -> None:
    """Replace the labels of a run directory or a sweep.

    Raises:
        RunDirError: The folder can't be written, or the labels can't be read.
    """
    with _changing(folder), private_files(folder.stat().st_mode & 0o077 == 0):
        before = labels_to_change(lambda: read_json(folder, LABELS), str(folder))
        write_atomic(folder / LABELS, change(before).as_text())


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """Let one process at a time read and write the labels. The folder itself is locked, not the lock of its driver."""
    with named_errors(folder, "Labelling requires write permission."):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
