"""Checkpoints of a run: complete or absent, each with a list of its files next to them."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from rtrain.errors import CheckpointError, ForbiddenFileError, RtrainError, first_line
from rtrain.runs.filesystem.files import (
    current_umask,
    despite_removal,
    sha256_of,
    sync_directory,
    sync_file,
    to_json,
    write_atomic,
)
from rtrain.runs.filesystem.plain_files import is_plain_name, read_json
from rtrain.runs.manifest import check_files, utc_now
from rtrain.runs.signature import is_signed, sign
from rtrain.text.printable import printable

RECORD_NAME = "checkpoint.json"
BASE_NAME = "base.json"
"""Names the pretrained model that a checkpoint of adapters lacks."""
SIGNS = {"max": 1, "min": -1, "newest": 0}
"""What a score is multiplied with, by its mode, for the best one to be the largest. ``newest`` is in older records."""
PROBE_BYTES = 1 << 16
"""What is written to find out whether a folder can be written."""
Writer = Callable[[Path], None]
"""Fills the empty folder of a checkpoint. Other threads may continue meanwhile."""


def checkpoints_dir(run_dir: Path) -> Path:
    """Return the folder of all checkpoints of a run."""
    return run_dir / "checkpoints"


def checkpoint_dir(run_dir: Path, *, step: int, epoch: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return checkpoints_dir(run_dir) / f"epoch-{epoch:04d}-step-{step:08d}"


def write_checkpoint(target: Path, write: Writer, facts: Mapping[str, Any], signing_key: str = "") -> dict[str, Any]:
    """Write one checkpoint and return its record.

    A folder with a temporary name is filled, its files are synced and listed in ``checkpoint.json``, then it gets its
    name.

    Args:
        target: Where it will be.
        write: Fills the folder.
        facts: ``step``, ``epoch``, ``metrics`` and ``score`` of the record.
        signing_key: Signs the list of files; empty: it is not signed.

    Raises:
        CheckpointError: The folder can't be written.
    """

    def write_once() -> dict[str, Any]:
        temporary = target.with_name(f".{target.name}-{secrets.token_hex(3)}.tmp")
        temporary.mkdir(parents=True)
        try:
            write(temporary)
            return complete_checkpoint(temporary, target, facts, signing_key)
        except Exception as error:
            if temporary.exists():
                raise
            # Frameworks have their own errors for a folder that is moved or deleted.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(temporary)) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    with writing(target, None):
        return despite_removal(write_once)


@contextmanager
def writing(target: Path, temporary: Path | None) -> Iterator[None]:
    """Name the checkpoint in errors of the block, and leave nothing of ``temporary`` behind, if it is ours."""
    try:
        yield
    except RtrainError:
        raise
    except Exception as error:  # frameworks have their own for a disk that is full
        raise unwritable(target, reason_of(error, target.parent)) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def reason_of(error: BaseException, folder: Path) -> str:
    """Return in a few words why something can't be written into a folder."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # torch, TensorFlow and others report a location in their code when a disk is full.
    said = first_line(error)
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as refused:
        return f"{refused.strerror} ({said})"
    return said


def unwritable(target: Path, reason: str) -> CheckpointError:
    """Return the error of a checkpoint that can't be written."""
    return CheckpointError(
        f"can't write the checkpoint {target}: {reason}.",
        "Every worker must be able to write to run.root_dir, with space for the checkpoints.",
    )


def complete_checkpoint(
    temporary: Path, target: Path, facts: Mapping[str, Any], signing_key: str = ""
) -> dict[str, Any]:
    """Sync, list and sign the files of a filled folder, give it its name, and return its record."""
    _as_other_files(temporary)
    record = describe_checkpoint(temporary, target.name, facts)
    if signing_key:
        record["seal"] = sign(signing_key, _listed(record))
    write_atomic(temporary / RECORD_NAME, to_json(record, indent=2))
    try:
        temporary.rename(target)
    except OSError:
        if not (target / RECORD_NAME).exists():
            raise
        return read_record(target)  # a worker whose driver was killed has written the same step
    sync_directory(target.parent)
    return record


def _as_other_files(folder: Path) -> None:
    """Give weights the permissions of other new files: safetensors lets their owner alone read them."""
    permissions = 0o666 & ~current_umask()
    for path in folder.rglob("*.safetensors"):
        if path.is_file() and not path.is_symlink():
            path.chmod(permissions)


def note_in_checkpoint(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Change facts in the record of a complete checkpoint, the files of which stay, and return the record."""
    record = {**read_record(folder), **facts}
    write_atomic(folder / RECORD_NAME, to_json(record, indent=2))
    return record


def _listed_name(path: Path, folder: Path) -> str:
    """Return the name of a file of a checkpoint in its record.

    Raises:
        CheckpointError: A record with this name could not be read: it has a backslash.
    """
    name = path.relative_to(folder).as_posix()
    if not is_plain_name(name, nested=True):
        raise CheckpointError(
            f"a file of the checkpoint is named {printable(name)}, which is a path on other systems.",
            "Save it under a name without a backslash.",
        )
    return name


def describe_checkpoint(folder: Path, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a filled folder: ``facts``, and the size and sha256 of each file."""
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != RECORD_NAME):
        sync_file(path)
        files[_listed_name(path, folder)] = {"size_bytes": path.stat().st_size, "sha256": sha256_of(path)}
    for path in (p for p in folder.rglob("*") if p.is_dir()):
        sync_directory(path)
    size_bytes = sum(path.stat().st_size for path in map(folder.joinpath, files))
    return {"name": name, "time": utc_now(), **facts, "size_bytes": size_bytes, "files": files}


def _listed(record: Mapping[str, Any]) -> str:
    """Return what is signed of a record: names, sizes and hashes of all files."""
    return json.dumps(record["files"], sort_keys=True)


def is_signed_list(checkpoint: Path, mark: str) -> bool:
    """Return whether the record lists all files and was signed when they were written. ``damages`` compares contents.

    Args:
        checkpoint: Its folder.
        mark: Signature of the account, in the checkpoint's ``about.json``.

        Raises:
            CheckpointError: The folder is not a complete checkpoint.
    """
    record = read_record(checkpoint)
    there = {one.relative_to(checkpoint).as_posix() for one in checkpoint.rglob("*") if not one.is_dir()}
    extra = {name for name in there - {RECORD_NAME, *record["files"]} if not name.startswith(".")}
    return not extra and is_signed(mark, _listed(record), str(record.get("seal")))


def read_record(checkpoint: Path) -> dict[str, Any]:
    """Return the record inside a checkpoint folder. Its name is that of the folder, whatever the file says.

    Raises:
        CheckpointError: The folder is not a complete checkpoint.
        ForbiddenFileError: This account may not read it.
    """
    try:
        return record_of(read_json(checkpoint, RECORD_NAME), checkpoint.name)
    except ForbiddenFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CheckpointError(f"{checkpoint} is not a complete checkpoint: {error!r}") from error


def record_of(stored: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what was read of the record of a checkpoint.

    Args:
        stored: What was read.
        name: Of the checkpoint's folder, which counts, whatever is written.

    Raises:
        ValueError: A name of a file leads out of the folder, or a number is none; TypeError, KeyError and
            AttributeError: Something is missing, or of another type.
    """
    files = {
        str(file): {"size_bytes": int(facts["size_bytes"]), "sha256": str(facts["sha256"])}
        for file, facts in stored["files"].items()
    }
    check_files(files)
    return {**stored, "name": name, "step": int(stored["step"]), "epoch": int(stored.get("epoch", 0)), "files": files}


def read_state(checkpoint: Path, name: str) -> dict[str, Any]:
    """Return what a JSON file of a checkpoint holds.

    Raises:
        CheckpointError: It can't be read, or holds no mapping.
    """
    try:
        stored = read_json(checkpoint, name)
    except ForbiddenFileError:
        raise
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{checkpoint / name} can't be read: {error}") from error
    if not isinstance(stored, dict):
        raise CheckpointError(f"{checkpoint / name} can't be read: it is not a mapping")
    return stored


def base_folders(checkpoint: Path) -> tuple[Path, ...]:
    """Return the folders in which the base of a checkpoint is looked for, in order.

    There are none if the checkpoint holds its whole model, or names a model of the hub.
    """
    try:
        stored = read_state(checkpoint, BASE_NAME)
    except CheckpointError:  # there is none; or whoever compares it with its record finds what is wrong
        return ()
    folder, named = stored.get("folder"), stored.get("pretrained")
    return tuple(Path(one) for one in (folder, named) if isinstance(one, str) and "\0" not in one) if folder else ()


def missing_base(checkpoint: Path) -> Path | None:
    """Return the folder of the base of a checkpoint, if it is gone, or may not be read; else None."""
    places = base_folders(checkpoint)
    return None if not places or any(map(_is_folder, places)) else places[0]


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except OSError:
        return False


def all_checkpoints(run_dir: Path) -> list[Path]:
    """Return the folders of all complete checkpoints, the one with the most steps last."""
    steps = {}
    for path in checkpoints_dir(run_dir).glob(f"[!.]*/{RECORD_NAME}"):
        try:
            steps[path.parent] = read_record(path.parent)["step"]
        except CheckpointError:  # one that can't be read counts as none; ``rtrain runs verify`` names it
            continue
    return sorted(steps, key=lambda path: (steps[path], path.name))


def latest_checkpoint(run_dir: Path) -> Path | None:
    """Return the complete checkpoint with the most steps, or None."""
    return next(reversed(all_checkpoints(run_dir)), None)


def best_record(records: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the record with the best score, of equal ones the first; None if none has a score."""
    return next(iter(_by_score(records)), None)


def _by_score(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those with a score, the best first. Of a model that holds all before it, the newest is the best."""
    scored = [record for record in records if _is_score(record.get("score"))]
    if not scored:
        return []
    last = scored[-1]["score"]
    sign = 0 if last.get("newest") else SIGNS[last["mode"]]
    oldest_first = 1 if sign else -1
    return sorted(scored, key=lambda record: (-sign * record["score"]["value"], oldest_first * record["step"]))


def _is_score(score: Any) -> bool:
    """Tell whether a score can be compared: that of no number, infinity say, comes back from a file as None."""
    known = isinstance(score, Mapping) and score.get("mode") in tuple(SIGNS)
    return known and isinstance(score.get("value"), int | float)


@dataclass(frozen=True)
class Retention:
    """Which checkpoints stay, as ``run.checkpoint`` says it."""

    keep: int = 1
    """How many of the newest."""
    keep_best: int = 1

    def kept(self, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the records of those that stay, oldest first."""
        ordered = sorted(records, key=lambda record: (record["step"], record["name"]))
        stay = {record["name"] for record in (*ordered[-self.keep :], *_by_score(ordered)[: self.keep_best])}
        return [dict(record) for record in ordered if record["name"] in stay]


NEWEST_AND_BEST = Retention()


def prune_checkpoints(
    run_dir: Path, records: Iterable[Mapping[str, Any]], retention: Retention
) -> list[dict[str, Any]]:
    """Delete those that are not kept; return those that stay, oldest first."""
    every = list(records)
    stay = retention.kept(every)
    for name in {record["name"] for record in every} - {record["name"] for record in stay}:
        remove_checkpoint(checkpoints_dir(run_dir) / name)
    return stay


def remove_checkpoint(folder: Path) -> None:
    """Delete a checkpoint that a kill in between leaves whole or hidden, never in parts."""
    if folder.is_symlink():  # the folder was moved: only the link is ours
        folder.unlink()
        return
    doomed = folder.with_name(f".{folder.name}-{secrets.token_hex(3)}.old")
    if folder.exists():
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
