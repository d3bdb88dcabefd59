"""The files of a checkpoint that a loop reports: found and checked before the first of them is copied."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rtrain.errors import CheckpointError, TrainingError, first_line
from rtrain.runs.checkpoints import RECORD_NAME, read_record, unwritable
from rtrain.runs.events import events_file
from rtrain.trainers.trained import FILE_NAME

OWN_FOLDER = "Write the checkpoint into a new folder, e.g. tempfile.mkdtemp(), and report that."


@dataclass(frozen=True)
class FoundFiles:
    """What a checkpoint consists of."""

    folders: list[Path]
    """Relative to the checkpoint, outer ones first; the checkpoint itself is one of them."""
    files: list[Path]
    size_bytes: int


def copy_files(source: Path, into: Path, target: Path, part_name: str) -> None:
    """Copy the files of a checkpoint, those behind links too; those that rtrain has written are left out.

    Args:
        source: The checkpoint.
        into: Where they go; it may hold files of other ranks.
        target: What errors call the copy.
        part_name: Of a file while it is copied; no other process uses it.

    Raises:
        TrainingError: The folder is not a checkpoint: it holds other things than files, or this run.
        CheckpointError: A file can't be read or written.
    """
    found = find_files(source, target.parent)
    for folder in found.folders:
        (into / folder).mkdir(parents=True, exist_ok=True)
    for file in found.files:
        part = into / file.parent / part_name
        try:
            shutil.copy(source / file, part)
            part.replace(into / file)  # another rank may copy a file of the same name
        except OSError as error:
            raise unwritable(target, f"{source / file}: {error.strerror or first_line(error)}") from error


def find_files(source: Path, checkpoints: Path) -> FoundFiles:
    """Return what a checkpoint consists of.

    Args:
        source: The checkpoint.
        checkpoints: Where the copy goes; it must have space for all of it.

    Raises:
        TrainingError: The folder is not a checkpoint: it holds other things than files, or this run.
        CheckpointError: It can't be read, or there is no space for it.
    """
    _check_place(source, checkpoints)
    folders: list[Path] = []
    files: list[Path] = []
    size_bytes = 0
    left_out = _own_files(source)
    for path, is_folder, size in _walk(source, ()):
        if is_folder:
            folders.append(path.relative_to(source))
        elif path not in left_out:
            files.append(path.relative_to(source))
            size_bytes += size
    free = shutil.disk_usage(checkpoints).free
    if size_bytes > free:
        raise CheckpointError(
            f"the checkpoint that the loop reported in {source} has {size_bytes / 1e9:,.1f} GB in "
            f"{len(files):,} files, and {checkpoints} has space for {free / 1e9:,.1f} GB.",
            "Report a folder with nothing else in it, or choose a run.root_dir with more space.",
        )
    return FoundFiles(folders, files, size_bytes)


def _check_place(source: Path, checkpoints: Path) -> None:
    """Refuse folders that many things share: a copy would never end, or hold files that belong to no checkpoint."""
    place = source.resolve()
    shared = {
        "the run directory": checkpoints,
        "the folder of temporary files": Path(tempfile.gettempdir()),
        "the home directory": Path(os.path.expanduser("~")),  # noqa: PTH111 - as it is where there is none
    }
    for name, inside in shared.items():
        if inside.resolve().is_relative_to(place):
            raise TrainingError(f"the checkpoint that the loop reported, {source}, is or contains {name}.", OWN_FOLDER)


def _walk(folder: Path, outer: tuple[tuple[int, int], ...]) -> Iterator[tuple[Path, bool, int]]:
    """Yield a folder and all that is below it, through links, with whether it is a folder and its size in bytes."""
    try:
        about = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise _unreadable(folder, error.strerror) from error
    own = (about.st_dev, about.st_ino)
    if own in outer:
        raise _refused(folder, "a link to a folder that contains it")
    yield folder, True, 0
    for entry in entries:
        path = folder / entry.name
        try:
            kind = entry.stat()
        except OSError as error:
            raise _unreadable(path, error.strerror) from error
        if stat.S_ISDIR(kind.st_mode):
            yield from _walk(path, (*outer, own))
        elif not stat.S_ISREG(kind.st_mode):
            raise _refused(path, "a socket, a pipe or a device")
        elif not os.access(path, os.R_OK):
            raise _unreadable(path, "Permission denied")
        else:
            yield path, False, kind.st_size


def _refused(path: Path, what: str) -> TrainingError:
    return TrainingError(f"the checkpoint that the loop reported can't be copied: {path} is {what}.", OWN_FOLDER)


def _unreadable(path: Path, reason: str | None) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint that the loop reported can't be read: {path}: {reason}.",
        "Report a folder whose files are complete, and keep it until ray.train.report has returned.",
    )


def _own_files(source: Path) -> set[Path]:
    """Return the files in the folder of a checkpoint that rtrain has written: of one that is reported again.

    Raises:
        TrainingError: There are files of the same names that rtrain has not written.
    """
    own = {source / RECORD_NAME, source / FILE_NAME, events_file(source)}
    if not any(path.exists() for path in own):
        return set()
    try:
        read_record(source)
    except CheckpointError as error:
        names = " and ".join(sorted(path.name for path in own if path.exists()))
        raise TrainingError(
            f"the checkpoint in {source} has files named {names}, which rtrain writes into checkpoints.",
            "Rename them.",
        ) from error
    return own
