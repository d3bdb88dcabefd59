"""Keeps a copy in a store up to date during training, which never waits for it."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from rtrain.config.files.yaml_file import read_yaml
from rtrain.config.run_conf import RunConf
from rtrain.errors import ConfigError
from rtrain.process.retrying import RetryingThread
from rtrain.runs.checkpoints import Retention, record_of
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.filesystem.plain_files import check_run_dir, is_plain_name, parse_json, read_text
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest
from rtrain.runs.signature import is_signed_by_this_account
from rtrain.storage.access import check_access, patiently
from rtrain.storage.folders import Folder, WatchedFolder, read
from rtrain.storage.run_copy import DAMAGED, RunCopy
from rtrain.storage.stores import errors_named, said

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""How often the run directory is looked at for a new checkpoint."""
INTERVAL_SECONDS = 10.0
"""Time between two copies of manifest and events, unless there is a new checkpoint: a sign of life, too."""


@dataclass(frozen=True, kw_only=True)
class CopyState:
    """How the copy of a run that is over stands."""

    complete: bool
    missing: list[str]
    """Checkpoints that are on this machine only."""
    error: str | None
    """What the store said last."""


class Copy(Protocol):
    """What a mirror keeps up to date."""

    folder: Folder
    lost: dict[str, str]
    """Checkpoints of this machine that can't be sent, and why."""

    def update(self, *, last: bool = False) -> None:
        """Send what is new; ``last``: it will not be asked again. It raises what the store says."""

    def missing(self) -> list[str]:
        """Return the names of the checkpoints of this machine that are not in the store."""

    def has_news(self) -> bool:
        """Return whether there is something to send immediately."""


def mirror_run(run_dir: Path, folder: Folder, retention: Retention, notice: Callable[[str], None]) -> Mirror:
    """Begin to copy a run directory into a store.

    Args:
        run_dir: The run directory; its manifest says which checkpoints there are.
        folder: Where the copy goes.
        retention: Which checkpoints stay there.
        notice: Takes a line for the user.
    """
    return Mirror(lambda watched: RunCopy(run_dir, watched, retention), folder, notice)


class Mirror(RetryingThread):
    """A thread that keeps a copy in a store up to date.

    Args:
        make: Makes the copy of the folder that it gets.
        folder: Where the copy goes.
        notice: Takes a line for the user.
    """

    def __init__(self, make: Callable[[Folder], Copy], folder: Folder, notice: Callable[[str], None]) -> None:
        super().__init__("storage")
        self._copy, self._notice = make(WatchedFolder(folder, self._note_progress)), notice
        self._thread.start()

    def finish(self, timeout_seconds: float, hurry: Callable[[], bool] = lambda: False) -> CopyState:
        """Wait until everything is copied.

        Args:
            timeout_seconds: How long the store may take nothing before the rest is given up.
            hurry: Whether to give up the rest immediately.
        """
        complete, interrupted = False, None
        try:
            complete = self._is_done_in(timeout_seconds, hurry)
        except KeyboardInterrupt:
            interrupted = "it was interrupted"
        said_last, missing = self._error or interrupted, self._copy.missing()
        if complete and not missing:
            return CopyState(complete=True, missing=[], error=None)
        error = (
            said_last or "; ".join(self._copy.lost.values()) or f"it accepted no data for {timeout_seconds:g} seconds"
        )
        return CopyState(complete=False, missing=missing, error=error)

    def _send(self, *, last: bool) -> None:
        self._copy.update(last=last)
        if self._error is not None:
            self._notice(f"{self._copy.folder.url} works again")

    def _wait_for_news(self) -> None:
        """Return when there is a checkpoint to copy, when it is time for the rest, or at the end."""
        due = time.monotonic() + INTERVAL_SECONDS
        while time.monotonic() < due and not self._ending.wait(POLL_SECONDS):
            if self._copy.has_news():
                return

    def _note_progress(self) -> None:
        self._moved_at = time.monotonic()
        if self._given_up.is_set():
            raise OSError("it was abandoned")

    def _note_failure(self, error: BaseException) -> str | None:
        if self._given_up.is_set():
            return self._error
        logger.warning("copying to %s failed: %s", self._copy.folder.url, said(error))
        if self._error is None:
            self._notice(f"{self._copy.folder.url} fails: {said(error)}; copying is retried")
        return said(error)


def upload_run(
    run_dir: Path, storage: str | None, notice: Callable[[str], None], key: str = "run.storage"
) -> tuple[str, CopyState]:
    """Upload the missing files of an ended run; return the destination and the outcome.

    Args:
        run_dir: The run directory, which no other process may be writing.
        storage: The store; None: the run's own, if this account wrote its config.
        notice: Takes a line for the user.
        key: What named the store, for messages.

    Raises:
        ConfigError: The run names no store, is another account's and would name one, or the store refuses access.
        StrangeFileError: A link, a pipe or the like stands in the place of a file of the run.
        RunInUseError: It is in progress.
    """
    check_run_dir(run_dir)
    manifest = read_manifest(run_dir)
    _check_records(run_dir, manifest)
    config, own = _config_of(run_dir, manifest)
    settings = _settings(run_dir) if own else {}
    storage = storage or store_of(run_dir)
    with locked(run_dir):
        name, run_id = _place_there(run_dir, manifest, own=own)
        folder = check_access(storage, name, key=key).below(run_id)
        with errors_named(storage, key):
            _check_free(folder, manifest, config, own=own)
        mirror = mirror_run(run_dir, folder, Retention(sys.maxsize, 1), notice)
        ending = mirror.finish(settings.get("storage_timeout_seconds", RunConf.storage_timeout_seconds))
        manifest.storage = {"url": folder.url, **asdict(ending)}
        manifest.write(run_dir)
    return folder.url, ending


def store_of(run_dir: Path) -> str:
    """Return the ``run.storage`` of a run.

    Raises:
        ConfigError: It has none, or another account wrote its config.
    """
    manifest = read_manifest(run_dir)
    storage = _settings(run_dir).get("storage") if _config_of(run_dir, manifest)[1] else None
    if storage is None:
        raise _no_store(run_dir, manifest)
    return str(storage)


def _settings(run_dir: Path) -> dict[str, Any]:
    return dict(read_yaml(run_dir / "config.yaml")[0].get("run", {}))


def _check_records(run_dir: Path, manifest: Manifest) -> None:
    try:
        for record in manifest.checkpoints:
            record_of(record, record["name"])
    except DAMAGED as error:
        raise ConfigError(f"{run_dir}/manifest.json lists an invalid checkpoint: {error!r}") from error


def _config_of(run_dir: Path, manifest: Manifest) -> tuple[str, bool]:
    """Return the text of a run's config, and whether this account wrote it."""
    try:
        text = read_text(run_dir, "config.yaml")
    except (FileNotFoundError, ValueError):
        return "", False
    return text, is_signed_by_this_account(text, manifest.project_root)


def _no_store(run_dir: Path, manifest: Manifest) -> ConfigError:
    why = "has no run.storage"
    if manifest.config.get("run", {}).get("storage") is not None:
        why = "was created by another account, or its config.yaml was changed: its run.storage is not used"
    return ConfigError(f"{run_dir} {why}.", "Set the store: --to s3://bucket/runs")


def _place_there(run_dir: Path, manifest: Manifest, *, own: bool) -> tuple[str, str]:
    """Return the folder in the store in which the run's own is, and the name of that.

    Trials are copied below the name of their sweep. The manifest of another account does not decide what is replaced.
    """
    url = (manifest.storage or {}).get("url") if own else None
    name = url.split("/")[-2] if isinstance(url, str) and url.count("/") > 1 else run_dir.absolute().parent.name
    if not is_plain_name(name):
        raise ConfigError(f"{run_dir}/manifest.json says that its copy is at {url!r}, which is not valid.")
    return name, manifest.run_id if own else run_dir.absolute().name


def _check_free(folder: Folder, manifest: Manifest, config: str, *, own: bool) -> None:
    """Check that a folder of a store holds no other run: what is there would be replaced.

    Raises:
        ConfigError: It does.
    """
    there = patiently(lambda: _text_there(folder, "config.yaml"))
    stored = _parsed(patiently(lambda: _text_there(folder, MANIFEST)) or "{}")
    same = stored.get("started_at") == manifest.started_at or (there == config != "")
    if not own and is_signed_by_this_account(there, str(stored.get("project_root", ""))):
        same = False
    if (there or stored) and not same:
        raise ConfigError(
            f"{folder.url} is the copy of another run, not {manifest.run_id}: it would be replaced.",
            "Rename the run directory, or use another store: --to s3://bucket/runs",
        )


def _text_there(folder: Folder, name: str) -> str:
    try:
        return read(folder, name).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _parsed(text: str) -> dict[str, Any]:
    """Return what a manifest says; nothing if it is damaged."""
    try:
        found = parse_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
