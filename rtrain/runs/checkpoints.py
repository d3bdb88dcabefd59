"""Checkpoints of a run: complete or absent, each with a list of its files beside them."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rtrain.errors import CheckpointError
from rtrain.runs.files import sha256_of, sync_directory, sync_file, to_json, write_atomic
from rtrain.runs.manifest import utc_now

RECORD_NAME = "checkpoint.json"


def checkpoints_dir(run_dir: Path) -> Path:
    """Return the folder of all checkpoints of a run."""
    return run_dir / "checkpoints"


def write_checkpoint(
    run_dir: Path, write: Callable[[Path], None], *, step: int, epoch: int, metrics: Mapping[str, float]
) -> dict[str, Any]:
    """Write one checkpoint and return its record.

    ``write`` fills a folder with a temporary name; its files are synced and listed in ``checkpoint.json``, then the
    folder gets its name. A checkpoint of the same step that is already there is kept as it is.

    Raises:
        CheckpointError: The folder can't be written.
    """
    target = checkpoint_dir(run_dir, step=step, epoch=epoch)
    if (target / RECORD_NAME).exists():
        return read_record(target)
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(3)}.tmp")
    with writing(target, temporary):
        temporary.mkdir(parents=True)
        write(temporary)
        return complete_checkpoint(temporary, target, step=step, epoch=epoch, metrics=metrics)


def checkpoint_dir(run_dir: Path, *, step: int, epoch: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return checkpoints_dir(run_dir) / f"epoch-{epoch:04d}-step-{step:08d}"


@contextmanager
def writing(target: Path, temporary: Path) -> Iterator[None]:
    """Name the checkpoint in errors of the block, and leave nothing of ``temporary`` behind."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"can't write the checkpoint {target}: {error.strerror or error}.",
            "Training needs a run.root_dir that every worker can write, with space for the checkpoints.",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def complete_checkpoint(
    temporary: Path, target: Path, *, step: int, epoch: int, metrics: Mapping[str, float]
) -> dict[str, Any]:
    """Sync and list the files of a filled folder, give it its name, and return its record."""
    record = describe_checkpoint(temporary, name=target.name, step=step, epoch=epoch, metrics=metrics)
    write_atomic(temporary / RECORD_NAME, to_json(record, indent=2))
    temporary.rename(target)
    sync_directory(target.parent)
    return record


def adopt_checkpoint(folder: Path, *, step: int, epoch: int, metrics: Mapping[str, float]) -> dict[str, Any]:
    """List the files of a complete checkpoint folder that something else wrote, and return its record."""
    record = describe_checkpoint(folder, name=folder.name, step=step, epoch=epoch, metrics=metrics)
    write_atomic(folder / RECORD_NAME, to_json(record, indent=2))
    return record


def describe_checkpoint(
    folder: Path, *, name: str, step: int, epoch: int, metrics: Mapping[str, float]
) -> dict[str, Any]:
    """Return the record of a filled folder: its place, progress, metrics, and the size and sha256 of each file."""
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != RECORD_NAME):
        sync_file(path)
        files[path.relative_to(folder).as_posix()] = {"size_bytes": path.stat().st_size, "sha256": sha256_of(path)}
    return {
        "name": name,
        "step": step,
        "epoch": epoch,
        "time": utc_now(),
        "metrics": dict(metrics),
        "size_bytes": sum(file["size_bytes"] for file in files.values()),
        "files": files,
    }


def read_record(checkpoint: Path) -> dict[str, Any]:
    """Return the record inside a checkpoint folder.

    Raises:
        CheckpointError: The folder is no complete checkpoint.
    """
    try:
        record: dict[str, Any] = json.loads((checkpoint / RECORD_NAME).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{checkpoint} is no complete checkpoint: {error}") from error
    return record


def check_whole(checkpoint: Path) -> None:
    """Find a copy that broke off: frameworks have their own ways to tell of it, and LightGBM kills the process.

    Raises:
        CheckpointError: A file has another size than when it was written. Files that are gone are not looked for.
    """
    if not (checkpoint / RECORD_NAME).exists():
        return
    for name, file in read_record(checkpoint)["files"].items():
        path = checkpoint / name
        if path.exists() and path.stat().st_size != file["size_bytes"]:
            raise CheckpointError(
                f"{path} is damaged: it has {path.stat().st_size:,} bytes instead of {file['size_bytes']:,}.",
                "Copy the checkpoint again.",
            )


def latest_checkpoint(run_dir: Path) -> Path | None:
    """Return the complete checkpoint with the most steps, or None."""
    found = [path.parent for path in checkpoints_dir(run_dir).glob(f"[!.]*/{RECORD_NAME}")]
    return max(found, key=lambda path: int(read_record(path)["step"]), default=None)


def prune_checkpoints(run_dir: Path, records: Iterable[Mapping[str, Any]], keep: int) -> list[dict[str, Any]]:
    """Delete all but the ``keep`` newest checkpoints and the best one; return the records that stay, oldest first."""
    ordered = sorted(records, key=lambda record: (record["step"], record["name"]))
    stay = {record["name"] for record in ordered[-keep:]} | {record["name"] for record in ordered if record["best"]}
    for record in ordered:
        if record["name"] not in stay:
            _remove(checkpoints_dir(run_dir) / record["name"])
    return [dict(record) for record in ordered if record["name"] in stay]


def _remove(folder: Path) -> None:
    """Delete a checkpoint that a kill in between leaves whole or hidden, never in parts."""
    doomed = folder.with_name(f".{folder.name}-{secrets.token_hex(3)}.old")
    if folder.exists():
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
