"""A sweep in ``run.storage``: its files are copied next to the runs of its trials, and fetched from there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.config.run_conf import RunConf
from rtrain.config.trials import COMMAND_NAME
from rtrain.errors import ConfigError, RunInUseError
from rtrain.runs.filesystem.files import SWEEP, private_files, to_json, write_atomic
from rtrain.runs.filesystem.lock import locked
from rtrain.runs.labels import LABELS
from rtrain.runs.signature import is_signed_by_this_account, not_trusted
from rtrain.runs.status import TRIAL_OVER
from rtrain.storage.access import check_access, patiently
from rtrain.storage.fetching import StoredRun, appearing, fetch_run, find_stored, is_alive, runs_below
from rtrain.storage.folders import Folder, open_folder, read, read_json
from rtrain.storage.mirror import CopyState, Mirror, store_of, upload_run
from rtrain.storage.small_files import SmallFiles
from rtrain.storage.stores import errors_named
from rtrain.sweeps.record.sweep_record import BEST, SweepRecord, is_sweep, load_record, point_to
from rtrain.training.local_copy import bring, root_of

FILES = (COMMAND_NAME, "multirun.yaml", "optimization_results.yaml", LABELS, SWEEP)
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
    """Fetch what is missing of the sweep at a URL, and return its folder; None if no sweep exists there.

    Args:
        url: ``<run.storage>/<sweep>``.
        notice: Takes a line for the user.
        trust: Even if another account wrote it.

    Raises:
        ConfigError: It is another user's, or the store refuses access.
        RunInUseError: Another machine works on it.
    """
    with errors_named(url, "SWEEP"):
        home = patiently(lambda: open_folder(url))
        record = _record(home)
        if record is None:
            return None
        if not trust and not is_signed_by_this_account(read(home, COMMAND_NAME).decode("utf-8", "replace"), ""):
            raise not_trusted(home.url, COMMAND_NAME)
        runs = list(runs_below(home))
        root = root_of(runs[0], trust=trust) if runs else Path("runs")
        folder = root / home.url.rstrip("/").rpartition("/")[2]
        _bring(home, record, runs, folder, notice)
        return folder


def copy_here(url: str, into: Path | None, notice: Notice) -> Path | None:
    """Make a folder of the sweep at a URL, which may be running elsewhere, and return it; None if no sweep is there.

    It appears complete or not at all. Nothing in it is executed.

    Args:
        url: ``<run.storage>/<sweep>``.
        into: The folder, which must not be there; None: that of its name in ``runs``.
        notice: Takes a line for the user.

    Raises:
        ConfigError: The store refuses.
        RtrainError: The folder is there.
    """
    with errors_named(url, "URL"):
        home = patiently(lambda: open_folder(url))
        record = _record(home)
        if record is None:
            return None
        folder = into or Path("runs", home.url.rpartition("/")[2])
        runs = list(runs_below(home))
        with private_files(any(run.is_private for run in runs)), appearing(folder) as part:
            for run in runs:
                fetch_run(run, part / run.run_id, notice)
            _bring_own(home, record, part)
            best = load_record(part).best
            if best is not None and (part / best.name).is_dir():
                point_to(part / BEST, best.name)
    return folder


def _record(home: Folder) -> dict[str, Any] | None:
    """Return what the ``sweep.json`` of a store says; None if there is none."""
    try:
        return patiently(partial(read_json, home, SWEEP))
    except FileNotFoundError:
        return None


def _bring(home: Folder, record: dict[str, Any], runs: list[StoredRun], folder: Path, notice: Notice) -> None:
    """Make the folder of a sweep, with the runs of its trials; leave what is here and as far."""
    under_way = [run for run in runs if run.manifest.get("storage") and not run.manifest["storage"]["complete"]]
    newest = max(under_way, key=lambda run: str(run.manifest["storage"].get("copied_at")), default=None)
    if newest is not None and is_alive(newest):
        raise _in_use(home)
    for run in runs:
        bring(run, folder / run.run_id, notice)
    if not is_sweep(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _bring_own(home, record, folder)


def _in_use(home: Folder) -> RunInUseError:
    return RunInUseError(f"{home.url} is in use by another machine.", "Wait until it ends.")


def _bring_own(home: Folder, record: dict[str, Any], folder: Path) -> None:
    """Bring the files of the sweep itself."""
    for name in FILES[:-1]:
        with suppress(FileNotFoundError):
            write_atomic(folder / name, patiently(partial(read, home, name)).decode())
    write_atomic(folder / SWEEP, to_json(record) + "\n")


def upload_sweep(folder: Path, storage: str | None, notice: Notice, key: str = "run.storage") -> tuple[str, CopyState]:
    """Copy what is missing in the store of a sweep that is over; return where to, and how that ended.

    Args:
        folder: Of the sweep; no other process may work on it.
        storage: The store; None: that of its trials, if this account wrote their configs.
        notice: Takes a line for the user.
        key: What named the store, for messages.

    Raises:
        ConfigError: The trials name no store, are another account's and would name one, or the store refuses.
        RunInUseError: It is still running.
    """
    with locked(folder):
        runs = [run for one in load_record(folder).trials if (run := folder / one.name).is_dir()]
        if not runs:
            raise ConfigError(f"{shown(folder)} has no trial to upload.")
        storage = storage or store_of(runs[0])
        home = check_access(storage, folder.absolute().name, key=key)
        endings = [upload_run(run, storage, notice, key)[1] for run in runs]
        mirror = Mirror(lambda watched: SmallFiles(folder, watched, FILES), home, notice)
        endings.append(mirror.finish(RunConf.storage_timeout_seconds))
    return home.url, next((one for one in endings if not one.complete), endings[-1])


@contextmanager
def copied(record: SweepRecord, storage: str, timeout_seconds: float, notice: Notice) -> Iterator[None]:
    """Keep a copy of the sweep's files while the block runs, and complete the copies of ended trials.

    Args:
        record: Record of the sweep, which notes what is incomplete.
        storage: The store.
        timeout_seconds: How long it may take nothing at the end before it is given up.
        notice: Takes a line for the user.

    Raises:
        ConfigError: The copy has trials that the sweep lacks.
        RunInUseError: Another machine trains one of them.
    """
    home = patiently(lambda: open_folder(storage, record.folder.name))
    _refuse_other_trials(record, home, storage)
    for trial in [one for one in record.trials if one.lacks_copy and one.status in TRIAL_OVER]:
        _, ending = upload_run(record.folder / trial.name, storage, notice)
        trial.lacks_copy = not ending.complete
    mirror = Mirror(lambda watched: SmallFiles(record.folder, watched, FILES), home, notice)
    try:
        yield
    finally:
        ending = mirror.finish(timeout_seconds)
        record.is_copied = ending.complete
        if not ending.complete:
            notice(f"{home.url} lacks files of the sweep itself ({ending.error}); they are in {record.folder}")


def _refuse_other_trials(record: SweepRecord, home: Folder, storage: str) -> None:
    """Refuse to replace the record of a copy that was extended from another folder: its trials would be lost."""
    own = {one.name for one in record.trials}
    stored = {str(one["name"]): one.get("status") for one in (_record(home) or {}).get("trials", [])}
    unknown = [name for name in stored if name not in own and not (record.folder / name).is_dir()]
    runs = {name: find_stored(storage, record.folder.name, name) for name in unknown}
    if any(run is not None and is_alive(run) for run in runs.values()):
        raise _in_use(home)
    others = [name for name, run in runs.items() if run is not None or stored[name] in TRIAL_OVER]
    if others:
        resume = to_try(shlex.join(["rtrain", "resume", home.url]))
        raise ConfigError(
            f"{home.url} has trials that {shown(record.folder)} lacks: {', '.join(others)}.",
            f"Rename this folder, and resume the copy. {resume}\nOr start another sweep: sweep.name=NAME",
        )
