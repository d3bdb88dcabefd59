"""What happened to the runs of trials while no process looked: they ended, they were deleted, or their process died."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from rtrain.config.composed import Composed
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.errors import ForbiddenFileError, RtrainError, RunInUseError, StrangeFileError
from rtrain.runs.facts import installed_versions, read_git
from rtrain.runs.filesystem.lock import holder, is_locked, wait_until_free
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest
from rtrain.runs.origin import code_changes, code_now, code_of_run, in_words
from rtrain.runs.status import TRIAL_OVER, WITH_RESULT, Status
from rtrain.runs.verify import set_aside
from rtrain.sweeps.checkpoint_transfer import end_run
from rtrain.sweeps.record.sweep_record import SweepRecord, best_of
from rtrain.sweeps.record.trial import Trial
from rtrain.trainers.registry import recorded_packages

PATIENCE_SECONDS = 30.0
"""How long the processes may take to end that a sweep has left."""
LAST_SECONDS = 2.0
"""How long processes may take that were killed."""


def catch_up(record: SweepRecord, scheduler: str | None, notice: Callable[[str], None]) -> dict[int, Mapping[str, Any]]:
    """Bring the trials of a record up to date with their run directories.

    A trial whose process wrote its end after the sweep was killed is over. One whose run was deleted is planned again,
    and so is one whose manifest is damaged; its run directory is kept under a hidden name.

    Args:
        record: Of the sweep.
        scheduler: Name of the sweep's scheduler, if it has one.
        notice: Takes a line for the user.

    Returns:
        The ``best_of`` of each trial that has a run, by its number.

    Raises:
        RunInUseError: Another process trains one of them; nothing has been changed.
    """
    _check_free(record, notice)
    found = dict[int, Mapping[str, Any]]()
    for trial in record.trials:
        run_dir = record.folder / trial.name
        if (run_dir / MANIFEST).exists():
            try:
                manifest = read_manifest(run_dir)
            except (StrangeFileError, ForbiddenFileError):
                raise
            except RtrainError as error:
                notice(
                    f"{error.message} {trial.name} is trained again; its old folder was renamed to "
                    f"{set_aside(run_dir).name}"
                )
                _forget(trial)
                continue
            found[trial.number] = best_of(manifest)
            _take_end(record, trial, manifest, scheduler)
        elif trial.status in (*WITH_RESULT, Status.PAUSED):
            notice(f"{trial.name} was deleted ({run_dir} has no {MANIFEST}): it is trained again")
            _forget(trial)
    return found


def _check_free(record: SweepRecord, notice: Callable[[str], None]) -> None:
    """Wait for the processes that a sweep has left: those of a cluster that was lost, say, end by themselves.

    Raises:
        RunInUseError: Another process, or one that does not end, trains a trial without a result.
    """
    folders = [record.folder / one.name for one in record.trials if one.status not in WITH_RESULT]
    for run_dir in filter(is_locked, folders):
        process = "another process" if (found := holder(run_dir)) is None else "process {} on {}".format(*found)
        notice(f"waiting for {process}, which still trains {run_dir.name}")
        if not wait_until_free(run_dir, PATIENCE_SECONDS):
            stop = shlex.join(["rtrain", "runs", "stop", shown(run_dir)])
            raise RunInUseError(
                f"{shown(run_dir)} is in use by {process}.", f"Wait until it ends, or stop it. {to_try(stop)}"
            )


def _take_end(record: SweepRecord, trial: Trial, manifest: Manifest, scheduler: str | None) -> None:
    if trial.status in TRIAL_OVER and not trial.lacks_copy:
        return
    trial.lacks_copy = manifest.lacks_copy
    if manifest.status == Status.SUCCEEDED and trial.status not in TRIAL_OVER:
        by_scheduler = str(manifest.exit_reason).startswith(f"{scheduler}: ")
        trial.status, trial.reason = Status.STOPPED if by_scheduler else Status.SUCCEEDED, str(manifest.exit_reason)
        record.take_best(trial, best_of(manifest))


def take_results(record: SweepRecord, found: Mapping[int, Mapping[str, Any]]) -> None:
    """Note what trials have reached where their reports alone don't say it, which is so of boosted trees.

    Args:
        record: Of the sweep, when the reports have been read again.
        found: As ``catch_up`` returns it.
    """
    for trial in record.trials:
        if trial.status in (*WITH_RESULT, Status.PAUSED):
            record.take_best(trial, found.get(trial.number, {}))


def tell_of_other_code(record: SweepRecord, probe: Composed, notice: Callable[[str], None]) -> None:
    """Say so where other code trained the trials that are over than will train the rest."""
    folders = [record.folder / one.name for one in record.trials if one.status in WITH_RESULT]
    before = read_manifest(folders[-1]) if folders and (folders[-1] / MANIFEST).exists() else None
    if before is None:
        return
    git = read_git(probe.project_root)
    versions = installed_versions(recorded_packages(probe.resolved["trainer"]["type"]))
    now = code_now(None if git is None else git.facts, versions)
    if found := code_changes(code_of_run(folders[-1], before), now):
        notice(f"the code is another one than that of {folders[-1].name}: {in_words(found)}")


def _forget(trial: Trial) -> None:
    """Make a trial what it was before it was trained."""
    planned = Trial(
        number=trial.number,
        point=trial.point,
        overrides=trial.overrides,
        name=trial.name,
        config_hash=trial.config_hash,
    )
    for one in fields(Trial):
        setattr(trial, one.name, getattr(planned, one.name))


def end_cut_off(run_dirs: Sequence[Path], status: str, reason: str) -> None:
    """Have the manifests of runs whose processes were just killed say how the sweep ended them; they could not do so.

    Args:
        run_dirs: The runs.
        status: The sweep's.
        reason: Why, in one line.
    """
    deadline = time.monotonic() + LAST_SECONDS
    for run_dir in run_dirs:
        if (run_dir / MANIFEST).exists() and wait_until_free(run_dir, deadline - time.monotonic()):
            with suppress(RtrainError):  # else the manifest stays as it is, as that of a killed run
                if read_manifest(run_dir).status == Status.RUNNING:
                    end_run(run_dir, status, reason)


def end_dead(run_dir: Path, error: Mapping[str, Any]) -> None:
    """Have the manifest of a run say that its process died; it could not say so itself."""
    if (run_dir / MANIFEST).exists():
        with suppress(RunInUseError):  # then its process lives, and will say how it ends
            end_run(run_dir, Status.FAILED, str(error["message"]), error)
