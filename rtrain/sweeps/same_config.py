"""Whether the trials of a sweep that is resumed are still those that were planned."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from pathlib import Path

import yaml

from rtrain.config.composed import Composed
from rtrain.config.files.locations import builtin_config_dir, project_of, shown
from rtrain.config.trials import COMMAND_NAME
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.plain_files import read_text
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.training.resuming import FREE, changed_keys, describe_changes, newer_keys

FIXED = ("", "seed", "init_from")
"""What may not change of ``run``, as a whole and by key: trials would begin otherwise than those before."""


def hash_of(composed: Composed, newer: Collection[str] = ()) -> str:
    """Return what stays the same for a trial while the sweep may be resumed: where and how it runs makes no difference.

    Args:
        composed: The trial.
        newer: Keys that count as missing.
    """
    of_run = (f"run.{key}" for key in composed.resolved["run"])
    free = filter(_may_change, (*FREE, *of_run))
    return composed.hash_without({*free, *newer})


def check_same(trial: Trial, composed: Composed, record: SweepRecord) -> None:
    """Check that a trial is the one that was planned under its number.

    Args:
        trial: As it was planned.
        composed: As it is now.
        record: The sweep's.

    Raises:
        ConfigError: It is not; names what has changed, where a run of the sweep tells.
    """
    same = {hash_of(composed), composed.config_hash}  # earlier versions kept the second one
    if trial.config_hash in same:
        return
    told = _manifest_of(trial, record)
    newer = [] if told is None else newer_keys(told, composed)
    if trial.config_hash in {hash_of(composed, newer), composed.hash_without(newer)}:
        return
    lines = [] if told is None else _changes(trial, told, composed)
    if not lines and (record.folder / trial.name / MANIFEST).exists():  # its hash is that of an earlier version
        return
    raise ConfigError(
        f"{shown(record.folder)} contains this sweep with another config: trial {trial.name} would no longer be the "
        + "\n  ".join(["same.", *lines]),
        "Change the config back, or start another sweep: sweep.name=NAME",
    )


def check_source(folder: Path, source: str) -> None:
    """Check that the sweep in a folder is of a config file, and not of another one whose runs have the same name.

    Where the file that the sweep is of no longer exists, it was moved.

    Args:
        folder: Of the sweep.
        source: A path or a name, as ``command.yaml`` has it.

    Raises:
        ConfigError: It is of another one; names both.
    """
    try:
        command = yaml.safe_load(read_text(folder, COMMAND_NAME))
    except (OSError, ValueError, yaml.YAMLError, RecursionError):  # nothing tells
        return
    before = command.get("config") if isinstance(command, dict) else None
    if isinstance(before, str):
        _, before = project_of(folder, str(command.get("project_root") or ""), before)
    if isinstance(before, str) and _is_other(before, source):
        first, second = (shown(Path(one)) if Path(one).is_absolute() else one for one in (before, source))
        raise ConfigError(
            f"{shown(folder)} contains the sweep of {first}; this one is of {second}.",
            "Give the runs of this one another name, run.name=NAME, or only the sweep: sweep.name=NAME",
        )


def _is_other(before: str, source: str) -> bool:
    """Return whether two configs are two files that both exist."""
    first, second = (builtin_config_dir() / f"{one}.yaml" if "/" not in one else Path(one) for one in (before, source))
    try:
        return not first.samefile(second)
    except OSError:
        return False


def _may_change(key: str) -> bool:
    section, _, rest = key.partition(".")
    return section in FREE and (section != "run" or rest.partition(".")[0] not in FIXED)


def _manifest_of(trial: Trial, record: SweepRecord) -> Manifest | None:
    """Return the manifest of a trial, or of another one that has a run."""
    folders = (record.folder / one.name for one in chain([trial], record.trials))
    return next((read_manifest(one) for one in folders if (one / MANIFEST).exists()), None)


def _changes(trial: Trial, told: Manifest, composed: Composed) -> list[str]:
    """Return a line for each key that is no longer as in a run, other than those that vary, and those that may."""
    varied = [f".{word.lstrip('+').partition('=')[0].replace('/', '.')}." for word in trial.overrides]

    def is_change(key: str) -> bool:
        return not _may_change(key) and not any(one in f".{key}." for one in varied)

    return describe_changes({key: values for key, values in changed_keys(told, composed).items() if is_change(key)})
