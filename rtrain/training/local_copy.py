"""Fetch runs from ``run.storage`` that another machine began or resumed."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import yaml

from rtrain.config.run_conf import RunConf
from rtrain.errors import ConfigError, RtrainError, RunInUseError
from rtrain.runs.checkpoints import latest_checkpoint, read_record
from rtrain.runs.manifest import MANIFEST, read_manifest
from rtrain.runs.signature import is_signed_by_this_account, not_trusted
from rtrain.storage.access import patiently
from rtrain.storage.fetching import StoredRun, fetch_run, find_stored, is_alive, stored_run, stored_runs
from rtrain.storage.folders import read
from rtrain.storage.stores import errors_named, is_url

NUM_STORED = 20
"""Runs in a store that are looked at, the newest ones."""


def in_store(run: RunConf) -> Iterator[StoredRun]:
    """Yield the newest runs of the run's name that ``run.storage`` has."""
    if run.storage is not None:
        yield from islice(stored_runs(run.storage, run.name), NUM_STORED)


def bring(run: StoredRun, run_dir: Path, notice: Callable[[str], None]) -> None:
    """Make a run directory of a stored run, unless there is one that is as far; one that is not is set aside."""
    if not is_ahead(run, run_dir):
        return
    if os.path.lexists(run_dir):
        _check_same(run, run_dir)
        older = run_dir.with_name(f".older-{run_dir.name}-{secrets.token_hex(3)}")
        notice(f"{run.folder.url} is ahead of {run_dir}, which was renamed to {older.name}")
        run_dir.rename(older)
    notice(f"fetching {run.folder.url}")
    fetch_run(run, run_dir, notice)


def _check_same(run: StoredRun, run_dir: Path) -> None:
    """Check that a folder holds the run that is about to take its place.

    Raises:
        ConfigError: It holds something else, or its manifest can't be read.
    """
    try:
        here = read_manifest(run_dir).run_id
    except RtrainError:
        here = None
    if here != run.run_id:
        raise ConfigError(
            f"{run_dir} already exists, but is not the run {run.run_id} that {run.folder.url} is a copy of.",
            "Rename it.",
        )


def catch_up(run_dir: Path, storage: str | None, notice: Callable[[str], None]) -> None:
    """Fetch a run from ``run.storage`` if another machine resumed it.

    Raises:
        RunInUseError: It still does.
    """
    if storage is None:
        return
    twin = find_stored(storage, run_dir.absolute().parent.name, run_dir.absolute().name)
    if twin is None or not is_ahead(twin, run_dir):
        return
    if is_alive(twin):
        raise RunInUseError(f"{twin.folder.url} is in use by another machine.", "Wait until it ends.")
    bring(twin, run_dir, notice)


def local_run(run: str, notice: Callable[[str], None], *, trust: bool = False) -> Path:
    """Return the run directory of a run that is named by it, or by the URL of its copy; this one is brought here.

    Args:
        run: Its folder or URL.
        notice: Called with a line about each step.
        trust: Bring it, even if another account wrote it.

    Raises:
        ConfigError: There is no run at the URL, or it is another user's; nothing was fetched.
        RunInUseError: Another machine works on it.
    """
    if not is_url(run):
        return Path(run)
    stored = stored_run(run)
    if not trust and _own_config(stored) is None:
        raise not_trusted(stored.folder.url, "config.yaml")
    *_, name, run_id = stored.folder.url.split("/")
    run_dir = root_of(stored, trust=trust) / name / run_id
    if is_alive(stored):
        raise RunInUseError(f"{stored.folder.url} is in use by another machine.", "Wait until it ends.")
    bring(stored, run_dir, notice)
    return run_dir


def root_of(run: StoredRun, *, trust: bool) -> Path:
    """Return the ``run.root_dir`` of a run in a store.

    Raises:
        ConfigError: It leads out of the current folder, and another account wrote it.
    """
    text, root = _own_config(run), Path(str(run.manifest["config"].get("run", {}).get("root_dir", RunConf.root_dir)))
    own = None if text is None else Path(yaml.safe_load(text)["run"]["root_dir"])
    if not trust and (root.is_absolute() or ".." in root.parts) and root != own:
        raise ConfigError(
            f"{run.folder.url} was created by another account, and its run.root_dir is {root}.",
            "If you trust its author: --trust",
        )
    return own or root  # a manifest bears no mark


def _own_config(run: StoredRun) -> str | None:
    """Return the text of the config of a run, if this account wrote it."""
    with errors_named(run.folder.url, "RUN"):
        try:
            text = patiently(lambda: read(run.folder, "config.yaml")).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
    return text if is_signed_by_this_account(text, str(run.manifest.get("project_root", ""))) else None


def is_ahead(run: StoredRun, run_dir: Path) -> bool:
    """Tell whether a store has a newer checkpoint of a run than its run directory, or there is no run directory."""
    if not (run_dir / MANIFEST).exists():
        return True
    here = latest_checkpoint(run_dir)
    step = -1 if here is None else read_record(here)["step"]
    return any(record["step"] > step for record in run.manifest["checkpoints"])


def is_worked_on(twin: StoredRun | None, run_dir: Path, notice: Callable[[str], None]) -> bool:
    """Tell whether another machine works on a run that the store has; of this one, the lock tells."""
    if twin is None or (run_dir.exists() and twin.manifest["host"].get("hostname") == platform.node()):
        return False
    notice(f"checking whether another machine uses {twin.folder.url}")
    return is_alive(twin)
