"""Whether the files of a run are what was written: nothing missing, torn, changed or extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rtrain.errors import CheckpointError, ForbiddenFileError, StrangeFileError
from rtrain.runs.checkpoints import RECORD_NAME, all_checkpoints, checkpoints_dir, missing_base, read_record
from rtrain.runs.events import damaged_lines, events_file, reaches_step
from rtrain.runs.filesystem.files import sha256_of, sha256_of_text
from rtrain.runs.filesystem.plain_files import forbidden, read_text, strange_entries, strange_files
from rtrain.runs.manifest import CONFIG_NAME, Manifest, read_manifest

MOST_LINES = 100
"""Damaged lines of events that are named one by one."""
FORBIDDEN = "forbidden"
"""The problem of a file that this account may not read: nothing is wrong with it."""


@dataclass(frozen=True)
class Finding:
    """Something that is not as it was written."""

    checkpoint: Path
    """The folder that it is about; of the run itself, the run directory."""
    path: Path
    problem: str
    """``missing``, ``damaged``, ``unfinished``, ``extra``, ``unreadable``, ``forbidden`` or ``elsewhere``."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.problem:<10}  {self.path}" + (f"  ({self.detail})" if self.detail else "")


def check_whole(checkpoint: Path) -> None:
    """Find a truncated or corrupt copy. Each framework reports one differently, and LightGBM kills the process.

    Raises:
        CheckpointError: A file has another content than when it was written. Missing files are not checked.
    """
    there = (checkpoint / RECORD_NAME).exists()
    for finding in damages(checkpoint) if there else _strange(checkpoint):
        if finding.problem == FORBIDDEN:
            raise forbidden(finding.path)
        if finding.problem != "missing":
            raise CheckpointError(f"{finding.path} is damaged: {finding.detail}.", "Copy the checkpoint again.")


def damages(checkpoint: Path) -> Iterator[Finding]:
    """Yield what is wrong with the files that the record of a checkpoint lists.

    Raises:
        CheckpointError: It has no readable record.
    """
    found = list(_strange(checkpoint))
    yield from found
    strange = {finding.path for finding in found}
    for name, file in read_record(checkpoint)["files"].items():
        path = checkpoint / name
        if not strange & {path, *path.parents}:
            yield from _changes(checkpoint, path, file)


def _strange(checkpoint: Path) -> Iterator[Finding]:
    return (Finding(checkpoint, path, "damaged", why) for path, why in strange_files(checkpoint))


def _changes(checkpoint: Path, path: Path, listed: Mapping[str, Any]) -> Iterator[Finding]:
    try:
        if not path.is_file():
            yield Finding(checkpoint, path, "missing")
        elif (size := path.stat().st_size) != listed["size_bytes"]:
            yield Finding(checkpoint, path, "damaged", f"{size:,} bytes instead of {listed['size_bytes']:,}")
        elif sha256_of(path) != listed["sha256"]:
            yield Finding(checkpoint, path, "damaged", "its content has changed")
    except PermissionError:
        yield Finding(checkpoint, path, FORBIDDEN, "this account may not read it")
    except OSError as error:
        yield Finding(checkpoint, path, "damaged", f"it can't be read: {error.strerror}")


def newest_whole(run_dir: Path) -> tuple[Path | None, list[Finding]]:
    """Return the newest checkpoint whose files are all as they were written, and what is wrong with newer ones.

    Raises:
        ForbiddenFileError: This account may not read one.
    """
    found: list[Finding] = []
    for checkpoint in reversed(all_checkpoints(run_dir)):
        wrong = list(damages(checkpoint))
        if not wrong:
            return checkpoint, found
        for finding in wrong:
            if finding.problem == FORBIDDEN:  # an older one would undo training
                raise forbidden(finding.path)
        found += wrong
    return None, found


def without_record(run_dir: Path, listed: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Path, str]]:
    """Yield each checkpoint whose record is missing or can't be read, and which of the two it is.

    Args:
        run_dir: The run directory.
        listed: The checkpoints of its manifest: other folders without a record are the user's.
    """
    names = {record["name"] for record in listed}
    for folder in sorted(path for path in checkpoints_dir(run_dir).glob("[!.]*") if path.is_dir()):
        if not (folder / RECORD_NAME).exists():
            if folder.name in names:
                yield folder, "missing"
            continue
        try:
            read_record(folder)
        except CheckpointError:
            yield folder, "unreadable"


def set_aside(folder: Path) -> Path:
    """Rename a damaged checkpoint, or run directory, so that nothing takes it for one, and a new one can have its name.

    Return what it is now.
    """
    aside = folder.with_name(f".damaged-{folder.name}")
    number = 1
    while aside.exists():
        number += 1
        aside = folder.with_name(f".damaged-{folder.name}-{number}")
    return folder.rename(aside)


def verify_run(run_dir: Path) -> list[Finding]:
    """Verify every file of a run directory against its manifest and its checkpoints' records.

    Raises:
        RtrainError: It is not a run directory.
    """
    manifest = read_manifest(run_dir)
    listed = {record["name"]: record for record in manifest.checkpoints}
    found = [*_wrong_entries(run_dir), *_missing_events(run_dir, manifest), *_wrong_config(run_dir, manifest)]
    for folder in sorted(checkpoints_dir(run_dir).glob("*")):
        if folder.is_dir():
            found += _wrong_checkpoint(folder, listed.pop(folder.name, None))
    return found + [_whole_folder(checkpoints_dir(run_dir) / name, "missing") for name in sorted(listed)]


def _wrong_entries(run_dir: Path) -> Iterator[Finding]:
    for problem in strange_entries(run_dir):
        yield Finding(run_dir, run_dir, "damaged", problem.message)
    path = events_file(run_dir)
    try:
        lines = list(islice(damaged_lines(path), MOST_LINES + 1))
    except FileNotFoundError:
        yield Finding(run_dir, path, "missing")
        return
    except StrangeFileError:  # it is among those above
        return
    except ForbiddenFileError as error:
        yield Finding(run_dir, path, FORBIDDEN, error.message)
        return
    for number in lines[:MOST_LINES]:
        yield Finding(run_dir, path, "damaged", f"line {number} can't be read")
    if len(lines) > MOST_LINES:
        yield Finding(run_dir, path, "damaged", "more lines can't be read")


def _missing_events(run_dir: Path, manifest: Manifest) -> Iterator[Finding]:
    """Find that reports which the manifest knows of are not in the file, which breaks off at a whole line."""
    path = events_file(run_dir)
    if manifest.events_lost_until is not None:
        lost = f"its reports up to step {manifest.events_lost_until}: the file was deleted or moved during training"
        yield Finding(run_dir, path, "missing", lost)
    try:
        reaches = not manifest.metrics or reaches_step(path, manifest.step)
    except (StrangeFileError, ForbiddenFileError):  # it is among the wrong entries
        return
    if not reaches and path.exists():
        yield Finding(run_dir, path, "damaged", f"it ends before step {manifest.step}, which was reported")


def _wrong_config(run_dir: Path, manifest: Manifest) -> Iterator[Finding]:
    """Find that ``config.yaml``, from which the run is resumed, is not what was written."""
    path = run_dir / CONFIG_NAME
    if manifest.config_sha256 is None:  # of an older version
        return
    try:
        content = read_text(run_dir, CONFIG_NAME)
    except FileNotFoundError:
        yield Finding(run_dir, path, "missing")
    except StrangeFileError:  # it is among the wrong entries
        return
    except ForbiddenFileError as error:
        yield Finding(run_dir, path, FORBIDDEN, error.message)
    except (OSError, ValueError) as error:
        yield Finding(run_dir, path, "damaged", f"it can't be read: {error}")
    else:
        if sha256_of_text(content) != manifest.config_sha256:
            yield Finding(run_dir, path, "damaged", "its content has changed")


def _wrong_checkpoint(folder: Path, listed: object) -> Iterator[Finding]:
    if folder.name.startswith("."):
        yield _whole_folder(folder, "damaged" if folder.name.startswith(".damaged-") else "unfinished")
        return
    try:
        yield from damages(folder)
        record = read_record(folder)
    except ForbiddenFileError as error:
        yield _whole_folder(folder, FORBIDDEN, error.message)
        return
    except CheckpointError as error:
        yield _whole_folder(folder, "unreadable", str(error))
        return
    if listed is None:
        yield _whole_folder(folder, "extra", "complete, but not in the manifest")
    elif listed != record:
        yield _whole_folder(folder, "damaged", "its record differs from the manifest's")
    yield from _missing_base(folder)
    known = {*record["files"], RECORD_NAME}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).as_posix() not in known:
            yield Finding(folder, path, "extra")


def _missing_base(checkpoint: Path) -> Iterator[Finding]:
    """Find that the pretrained model below the adapters of a checkpoint is not where it was: no file of the run."""
    if (place := missing_base(checkpoint)) is not None:
        needs = "the pretrained model of its adapters; if it is elsewhere: trainer.model.pretrained=NEW_PLACE"
        yield Finding(checkpoint, place, "elsewhere", f"{checkpoint.name} needs it, {needs}")


def _whole_folder(folder: Path, problem: str, detail: str = "") -> Finding:
    return Finding(folder, folder, problem, detail)
