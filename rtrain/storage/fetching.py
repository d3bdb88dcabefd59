"""Runs in a store: which there are, and one of them made a run directory again."""

from __future__ import annotations

import hashlib
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.errors import CheckpointError, RtrainError, StrangeFileError
from rtrain.runs.checkpoints import RECORD_NAME, best_record, record_of
from rtrain.runs.events import EVENTS
from rtrain.runs.filesystem.files import RECORDS, private_files, to_json, write_atomic
from rtrain.runs.filesystem.plain_files import is_plain_name
from rtrain.runs.manifest import MANIFEST, manifest_of
from rtrain.storage.access import patiently
from rtrain.storage.events_copy import join_parts
from rtrain.storage.folders import Folder, chunks_of, open_folder, read_json
from rtrain.storage.mirror import INTERVAL_SECONDS
from rtrain.storage.misnamed import no_run_at, numbered_trial
from rtrain.storage.run_copy import DAMAGED
from rtrain.storage.stores import errors_named

LATELY_SECONDS = 120
"""A run that was silent for longer is considered dead, if the machines' clocks are about right."""
SILENCE_SECONDS = 2.5 * INTERVAL_SECONDS
POLL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run as a store has it."""

    folder: Folder
    run_id: str
    manifest: Mapping[str, Any]
    """As it was when it was copied last: of a run that was killed, ``status`` stays ``running``."""

    @property
    def is_private(self) -> bool:
        """Whether its files are for one account alone: ``run.private``."""
        return bool(self.manifest["config"].get("run", {}).get("private"))


def stored_runs(storage: str, name: str, key: str = "run.storage") -> Iterator[StoredRun]:
    """Yield the runs of a name in a store, the newest first.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(storage, key):
        yield from runs_below(patiently(lambda: open_folder(storage, name)))


def runs_below(home: Folder) -> Iterator[StoredRun]:
    """Yield the runs in a folder of a store, the newest first. It raises what the store says."""
    for run_id in sorted(patiently(home.folders), reverse=True):
        if run_id.startswith("."):
            continue
        try:
            yield _stored_run(home.below(run_id), run_id)
        except (FileNotFoundError, ValueError):  # no manifest, or none that can be read
            continue


def find_stored(storage: str, name: str, run_id: str, key: str = "run.storage") -> StoredRun | None:
    """Return a run of a store; None if it does not have it.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(storage, key):
        try:
            return _stored_run(patiently(lambda: open_folder(storage, name, run_id)), run_id)
        except FileNotFoundError:
            return None


def stored_run(url: str, key: str = "RUN") -> StoredRun:
    """Return the run at a URL, or the trial of a sweep that ``SWEEP/3`` means.

    Raises:
        ConfigError: There is none, or the store refuses or does not answer.
    """
    with errors_named(url, key):
        try:
            return _run_at(url)
        except (FileNotFoundError, NotADirectoryError):
            if (trial := numbered_trial(url)) is not None:
                return _run_at(trial)
            if (wrong := no_run_at(url, key)) is not None:
                raise wrong from None
            raise


def _run_at(url: str) -> StoredRun:
    folder = open_folder(url)
    return _stored_run(folder, folder.url.rstrip("/").rpartition("/")[2])


def _stored_run(folder: Folder, run_id: str) -> StoredRun:
    manifest = patiently(lambda: read_json(folder, MANIFEST))
    try:
        records = [record_of(record, record["name"]) for record in manifest_of(manifest).checkpoints]
    except DAMAGED as error:
        raise ValueError(f"{MANIFEST} is invalid: {error}") from error
    return StoredRun(folder=folder, run_id=run_id, manifest={**manifest, "checkpoints": records})


def is_alive(run: StoredRun) -> bool:
    """Tell whether a machine still works on a run, or copies it: it gives a sign of life every few seconds.

    Where there was one lately, this waits for the next.
    """
    said = _sign_of_life(run.manifest)
    if not was_alive_lately(run.manifest):
        return False
    until = time.monotonic() + SILENCE_SECONDS
    while time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        with errors_named(run.folder.url, "run.storage"):
            now = _sign_of_life(_stored_run(run.folder, run.run_id).manifest)
        if now not in (said, None):
            return True
    return False


def was_alive_lately(manifest: Mapping[str, Any]) -> bool:
    """Tell whether the manifest of a copy was written lately by a machine that trains the run, or copies it."""
    return is_lately(_sign_of_life(manifest))


def is_lately(time: str | None) -> bool:
    """Tell whether a time that another machine wrote is less than two minutes away; False for None."""
    return time is not None and abs(datetime.now(UTC) - datetime.fromisoformat(time)) < timedelta(
        seconds=LATELY_SECONDS
    )


def _sign_of_life(manifest: Mapping[str, Any]) -> str | None:
    """Return when an unfinished copy was last worked on; None of one that is complete, or does not tell."""
    storage = manifest.get("storage") or {}
    return None if storage.get("complete", True) else storage.get("copied_at")


def fetch_run(run: StoredRun, into: Path, notice: Callable[[str], None], key: str = "run.storage") -> None:
    """Make a run directory of a stored run, with its newest whole checkpoint and its best one.

    It appears complete or not at all. Nothing in it is executed.

    Args:
        run: The run.
        into: The run directory, which must not exist.
        notice: Called with checkpoints that are damaged and left out.
        key: What named the store, for messages.

    Raises:
        RtrainError: The run directory exists, or a name in the store leads out of it.
        CheckpointError: All checkpoints are damaged.
        ConfigError: The store refuses or does not answer.
    """
    with private_files(run.is_private), appearing(into) as part, errors_named(run.folder.url, key):
        _fill(run, part, notice)


@contextmanager
def appearing(into: Path) -> Iterator[Path]:
    """Give a folder that becomes ``into`` if the block ends well.

    Raises:
        RtrainError: The folder is there.
    """
    if into.exists():
        is_run = any((into / name).is_file() for name in RECORDS)
        resume = to_try(shlex.join(["rtrain", "resume", str(into)]))
        raise RtrainError(f"{into} exists.", resume if is_run else "Name a folder that does not exist: it is created.")
    part = into.with_name(f".{into.name}-{secrets.token_hex(3)}.tmp")
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(into)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fill(run: StoredRun, part: Path, notice: Callable[[str], None]) -> None:
    sizes = patiently(run.folder.sizes)
    fetch_record(run.folder, sizes, part)
    (part / "checkpoints").mkdir()
    (part / "logs").mkdir(exist_ok=True)
    records = _records(run.folder, sizes, notice)
    fetched = _get_newest(run.folder, records, part, notice)
    if records and not fetched:
        raise _all_damaged(run.folder)
    best = best_record(records)
    if best is not None and best not in fetched and _get_checkpoint(run.folder, best, part, notice):
        fetched = [dict(best), *fetched]
    chosen = best_record(fetched)
    place = None if chosen is None else f"checkpoints/{chosen['name']}"
    manifest = {**run.manifest, "checkpoints": fetched, "best_checkpoint": place}
    write_atomic(part / MANIFEST, to_json(manifest, indent=2) + "\n")


def fetch_record(folder: Folder, sizes: dict[str, int], into: Path) -> None:
    """Copy what a store has of a run but its checkpoints and its manifest, as far as it is not here.

    Args:
        folder: The run in the store, which may say what is wrong.
        sizes: Of all its files.
        into: The folder here.
    """
    for name in sizes:
        is_here = (into / name).is_file() and (into / name).stat().st_size == sizes[name]
        if not name.startswith(("checkpoints/", EVENTS, MANIFEST, ".rtrain-probe")) and not is_here:
            _get(folder, name, into)
    with (into / EVENTS).open("ab") as events:
        join_parts(folder, sizes, events)


def _records(folder: Folder, sizes: Mapping[str, int], notice: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the records of the checkpoints that are complete.

    Raises:
        CheckpointError: None of them can be read.
    """
    found, damaged = [], 0
    for name in sizes:
        if name.startswith("checkpoints/") and name.endswith(f"/{RECORD_NAME}") and name.count("/") == 2:
            try:
                found.append(record_of(patiently(partial(read_json, folder, name)), name.split("/")[1]))
            except (StrangeFileError, *DAMAGED) as error:
                notice(f"{folder.url}/{name} is damaged: {error}; this checkpoint is skipped")
                damaged += 1
    if damaged and not found:
        raise _all_damaged(folder)
    return found


def _all_damaged(folder: Folder) -> CheckpointError:
    return CheckpointError(f"all checkpoints of {folder.url} are damaged.", "Start a new run.")


def _get_newest(
    folder: Folder, records: list[dict[str, Any]], part: Path, notice: Callable[[str], None]
) -> list[dict[str, Any]]:
    for record in sorted(records, key=lambda record: int(record["step"]), reverse=True):
        if _get_checkpoint(folder, record, part, notice):
            return [record]
    return []


def _get_checkpoint(folder: Folder, record: Mapping[str, Any], part: Path, notice: Callable[[str], None]) -> bool:
    """Copy a checkpoint; False, and nothing is left of it, where a file is not what its record says."""
    place = f"checkpoints/{record['name']}"
    for name, file in record["files"].items():
        try:
            digest = _get(folder, f"{place}/{name}", part)
        except (FileNotFoundError, StrangeFileError):
            digest = "none"
        if digest != file["sha256"]:
            notice(f"{folder.url}/{place} is damaged: {name} has changed; an older checkpoint is used")
            shutil.rmtree(part / place, ignore_errors=True)
            return False
    _get(folder, f"{place}/{RECORD_NAME}", part)
    return True


def _get(folder: Folder, name: str, part: Path) -> str:
    """Copy a file and return its sha256.

    Raises:
        RtrainError: Its name leads out of the run directory.
    """
    if not is_plain_name(name, nested=True):
        raise RtrainError(f"{folder.url} contains a file whose name points outside: {name}")
    target = part / name
    target.parent.mkdir(parents=True, exist_ok=True)

    def copy() -> str:
        digest = hashlib.sha256()
        with folder.open(name) as source, target.open("wb") as out:
            for chunk in chunks_of(source):
                digest.update(chunk)
                out.write(chunk)
        return digest.hexdigest()

    return patiently(copy)
