"""The record of a sweep whose ``sweep.json`` is damaged, from the runs of its trials."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtrain.config.compose.search_space import Axis
from rtrain.config.secrets.masked import mask_word
from rtrain.config.trials import Trials
from rtrain.errors import DamagedSweepError, RtrainError
from rtrain.runs.filesystem.files import SWEEP
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest
from rtrain.runs.status import Status
from rtrain.searches.base import Point, Search
from rtrain.sweeps.planning import Planner
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial

_NAME = re.compile(r"(\d{3,})-[0-9a-f]{8}")


def opened_record(
    trials: Trials, search: Search, facts: Mapping[str, Any], notice: Callable[[str], None]
) -> SweepRecord:
    """Return the record of a sweep: a new one, the existing one or, if it is damaged, a rebuilt one.

    Args:
        trials: What the command asks for.
        search: Proposes points.
        facts: What holds for the sweep as a whole.
        notice: Takes a line for the user.
    """
    folder = trials.folder
    try:
        return SweepRecord(folder, facts)
    except DamagedSweepError as error:
        record = SweepRecord(folder, facts, begins=True)
        runs = _runs(folder)
        _enroll(record, runs, trials, search)
        taken = [one for one in record.trials if _take_over(one, runs)]
        shutil.copyfile(folder / SWEEP, folder / f".damaged-{SWEEP}")
        record.axes_before = [axis.name for axis in trials.axes]
        notice(
            f"{error.message} It is rebuilt from the runs of {len(taken)} trials; the old file was renamed to "
            f".damaged-{SWEEP}"
        )
        return record


def _runs(folder: Path) -> dict[str, Manifest]:
    """Return the manifests of trials by name, in the order of their numbers; without those that can't be read."""
    found = {}
    for path in folder.glob(f"*/{MANIFEST}"):
        if _NAME.fullmatch(path.parent.name) and not path.parent.is_symlink():
            try:
                manifest = read_manifest(path.parent)
            except RtrainError:  # its trial is trained again
                continue
            if all(_NAME.fullmatch(Path(str(one.get("run"))).name) for one in manifest.lineage):
                found[path.parent.name] = manifest
    return dict(sorted(found.items(), key=lambda one: _number(one[0])))


def _enroll(record: SweepRecord, runs: Mapping[str, Manifest], trials: Trials, search: Search) -> None:
    """Give the record its trials, as they were planned."""
    if not search.adaptive:  # it proposes the same ones once more
        planner = Planner(trials, search, record)
        while planner.next() is not None:
            continue
        return
    for name, manifest in runs.items():
        point = _point(manifest, trials)
        number = len(record.trials)
        if point is None or trials.name(number, point) != name:
            continue
        words = [mask_word(word) for word in trials.words(point)]
        record.trials.append(Trial(number=number, point=point, overrides=words, name=name, config_hash=""))


def _point(manifest: Manifest, trials: Trials) -> Point | None:
    """Return what a run tries, as its overrides say; None if they lack something."""
    values = [_value(axis, manifest.overrides) for axis in trials.axes]
    found = tuple(value for value in values if value is not None)
    return found if len(found) == len(values) else None


def _value(axis: Axis, overrides: Sequence[str]) -> str | None:
    """Return the value of an axis that overrides stand for."""
    if axis.rows:
        return next((str(number) for number, row in enumerate(axis.rows) if set(row) <= set(overrides)), None)
    start = f"{axis.key}="
    return next((word.removeprefix(start) for word in reversed(overrides) if word.startswith(start)), None)


def _take_over(trial: Trial, runs: Mapping[str, Manifest]) -> bool:
    """Record a trial's run from its manifest, if it has one; ``catch_up`` finds how it ended."""
    manifest = runs.get(trial.name)
    if manifest is None:
        return False
    trial.config_hash, trial.status, trial.num_starts = manifest.config_hash, Status.INTERRUPTED, 1
    trial.step, trial.epoch = manifest.step, manifest.epoch
    trial.seconds = manifest.timings_seconds.get("total", 0.0)
    if manifest.status == Status.FAILED and manifest.error is not None:
        trial.status, trial.error = Status.FAILED, dict(manifest.error)
        trial.reason = str(manifest.exit_reason)
    trial.lineage = [_entry(one) for one in manifest.lineage]
    return True


def _entry(taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sweep's record of a checkpoint that a trial's manifest took from another trial."""
    kept = {key: taken.get(key) for key in ("time", "checkpoint", "step", "changes")}
    return {**kept, "source": _number(Path(taken["run"]).name)}


def _number(name: str) -> int:
    return int(name.partition("-")[0])
