"""A sweep in ``run.storage``: its own files are copied beside the runs of its trials, and it is brought from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.config.trials import COMMAND_NAME
from rtrain.errors import ConfigError, RunInUseError
from rtrain.from_store import bring, root_of
from rtrain.runs.filesystem.files import to_json, write_atomic
from rtrain.runs.labels import FILE_NAME as LABELS
from rtrain.runs.signature import is_signed_by_this_account
from rtrain.storage.access import check_access, patiently
from rtrain.storage.fetching import StoredRun, is_alive, runs_below
from rtrain.storage.folders import Folder, open_folder, read, read_json
from rtrain.storage.mirror import Mirror, upload_run
from rtrain.storage.small_files import SmallFiles
from rtrain.storage.stores import errors_named
from rtrain.sweeps.record.sweep_record import FILE_NAME, SweepRecord, is_sweep
from rtrain.sweeps.record.trial import OVER

FILES = (COMMAND_NAME, "multirun.yaml", "optimization_results.yaml", LABELS, FILE_NAME)
"""The one that makes a folder a sweep comes last."""
Notice = Callable[[str], None]


def find_sweep(storage: str, folder: Path, notice: Notice) -> None:
    """Bring a sweep here, unless it is here, if ``run.storage`` has it.

    Args:
        storage: The store.
        folder: Of the sweep, here.
        notice: Takes a line for the user.

    Raises:
        ConfigError: The store refuses.
        RunInUseError: Another machine works on it.
    """
    home = check_access(storage, folder.name, key="run.storage")
    with errors_named(storage, "run.storage"):
        if not is_sweep(folder) and (record := _record(home)) is not None:
            _bring(home, record, list(runs_below(home)), folder, notice)


def fetch_sweep(url: str, notice: Notice, *, trust: bool = False) -> Path | None:
    """Bring the sweep at a URL here, as far as it is not, and return its folder; None if no sweep is there.

    Args:
        url: ``<run.storage>/<sweep>``.
        notice: Takes a line for the user.
        trust: Even if another account wrote it.

    Raises:
        ConfigError: It is somebody else's, or the store refuses.
        RunInUseError: Another machine works on it.
    """
    with errors_named(url, "SWEEP"):
        home = patiently(lambda: open_folder(url))
        record = _record(home)
        if record is None:
            return None
        if not trust and not is_signed_by_this_account(read(home, COMMAND_NAME).decode("utf-8", "replace"), ""):
            raise ConfigError(
                f"{home.url} was made by another account, or on another machine: to go on runs what its {COMMAND_NAME} "
                "names.",
                "If you trust who wrote it: --trust",
            )
        runs = list(runs_below(home))
        root = root_of(runs[0], trust=trust) if runs else Path("runs")
        folder = root / home.url.rstrip("/").rpartition("/")[2]
        _bring(home, record, runs, folder, notice)
        return folder


def _record(home: Folder) -> dict[str, Any] | None:
    """Return what the ``sweep.json`` of a store says; None if there is none."""
    try:
        return patiently(partial(read_json, home, FILE_NAME))
    except FileNotFoundError:
        return None


def _bring(home: Folder, record: dict[str, Any], runs: list[StoredRun], folder: Path, notice: Notice) -> None:
    """Make the folder of a sweep, with the runs of its trials; leave what is here and as far."""
    under_way = [run for run in runs if run.manifest.get("storage") and not run.manifest["storage"]["complete"]]
    newest = max(under_way, key=lambda run: str(run.manifest["storage"].get("copied_at")), default=None)
    if newest is not None and is_alive(newest):
        raise RunInUseError(f"another machine works on {home.url}.", "Wait until it ends.")
    for run in runs:
        bring(run, folder / run.run_id, notice)
    if is_sweep(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES[:-1]:
        with suppress(FileNotFoundError):
            write_atomic(folder / name, patiently(partial(read, home, name)).decode())
    write_atomic(folder / FILE_NAME, to_json(record) + "\n")


@contextmanager
def copied(record: SweepRecord, storage: str, timeout_seconds: float, notice: Notice) -> Iterator[None]:
    """Keep a copy of the sweep's own files while the block runs, and complete those of trials that are over.

    Args:
        record: Of the sweep; hears what is not complete.
        storage: The store.
        timeout_seconds: How long it may take nothing at the end before it is given up.
        notice: Takes a line for the user.
    """
    for trial in [one for one in record.trials if one.lacks_copy and one.status in OVER]:
        _, ending = upload_run(record.folder / trial.name, storage, notice)
        trial.lacks_copy = not ending.complete
    home = patiently(lambda: open_folder(storage, record.folder.name))
    mirror = Mirror(lambda watched: SmallFiles(record.folder, watched, FILES), home, notice)
    try:
        yield
    finally:
        ending = mirror.finish(timeout_seconds)
        record.is_copied = ending.complete
        if not ending.complete:
            notice(f"{home.url} lacks files of the sweep itself ({ending.error}); they are in {record.folder}")
