"""The files of a sweep's folder: ``sweep.json``, and what Hydra's sweepers write."""

from __future__ import annotations

import math
import os
import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from rtrain.config.did_you_mean import did_you_mean
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError, DamagedSweepError, ForbiddenFileError, StrangeFileError
from rtrain.run_lines import Limits
from rtrain.runs.checkpoints import best_record
from rtrain.runs.filesystem.files import SWEEP, to_json, write_atomic
from rtrain.runs.filesystem.plain_files import is_plain_name, read_json
from rtrain.runs.manifest import Manifest, utc_now
from rtrain.runs.status import Status
from rtrain.searches.base import Objective
from rtrain.sweeps.record.trial import Trial, typed

BEST = "best"
"""A link to the run of the best trial."""
SCHEMA_VERSION = 1
INTERVAL_SECONDS = 1.0
MOST_NEARBY = 5


class SweepRecord:
    """Keeps ``sweep.json`` up to date.

    Args:
        folder: Of the sweep.
        facts: What holds for the sweep as a whole: ``command``, ``search``, ``scheduler``, ``axes``.
        begins: Whatever the file says is not read.

    Raises:
        DamagedSweepError: The file is there, and is not whole.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any], *, begins: bool = False) -> None:
        self.folder, self._facts = folder, dict(facts)
        self.trials: list[Trial] = []
        self.goals: list[Objective] = []
        self.status: str = Status.RUNNING
        self.by_ctrl_c = False
        """Ctrl-C has ended it, in this process."""
        self.is_copied = True
        """None of the sweep's files is missing in ``run.storage``, if they are copied there."""
        self._began = utc_now()
        self._resumes: list[str] = []
        self.axes_before: list[str] = []
        """Names of what the sweep varied when it was worked on before, in the order of its trials' points."""
        self._written = 0.0
        self._lock = threading.Lock()
        self._later: threading.Timer | None = None
        """Writes what has changed since the file was last written."""
        if not begins and (folder / SWEEP).exists():
            with _whole(folder / SWEEP):
                self._take_up(read_sweep(folder))

    def _take_up(self, before: Mapping[str, Any]) -> None:
        self._began, self._resumes = before["started_at"], [*before["resumes"], utc_now()]
        self.axes_before = [axis["key"].lstrip("+") for axis in before["axes"]]
        self.trials = [Trial.of(facts) for facts in before["trials"]]
        self.goals = [typed(Objective, goal) for goal in before["goals"]]

    @property
    def lacks_copy(self) -> bool:
        """Whether something is missing in ``run.storage``."""
        return not self.is_copied or any(one.lacks_copy for one in self.trials)

    @property
    def best(self) -> Trial | None:
        """The best trial that is not failed, by the first goal; None while nothing is known.

        Of equal ones, it is not one that has its value with another's checkpoint.
        """
        known = [one for one in self.trials if one.values is not None and one.status != Status.FAILED]
        if not known or not self.goals:
            return None
        sign = -1 if self.goals[0].mode == "max" else 1
        return min(known, key=lambda one: (sign * (one.values or [0.0])[0], one.copied_step, one.number))

    def judge_by(self, goals: Sequence[Objective]) -> None:
        """Take what the sweep looks for now, if its config says it; what trials had of another metric goes."""
        if not goals or list(goals) == self.goals:
            return
        self.goals = list(goals)
        for trial in self.trials:
            trial.values = None

    def take_best(self, trial: Trial, best: Mapping[str, Any]) -> None:
        """Note the best value of a trial; the first one gives the sweep its goal, if it has none.

        Args:
            trial: It is over.
            best: As ``best_of`` returns it. Of boosted trees it is what the model reaches that is kept, whatever
                rounds before have reported.
        """
        if not best:
            return
        if not self.goals:
            self.goals.append(Objective(metric=best["monitor"], mode=best["mode"]))
        if "kept" in best:
            values = [best["kept"].get(goal.metric) for goal in self.goals]
            is_known = all(one is not None and math.isfinite(one) for one in values)
            trial.values = [float(one) for one in values] if is_known else None
        elif trial.values is None and [goal.metric for goal in self.goals] == [best["monitor"]]:
            trial.values = [best["value"]]

    def write(self, *, now: bool = True) -> None:
        """Write the file; not ``now``: within ``INTERVAL_SECONDS``, together with what else changes until then."""
        with self._lock:
            wait = 0.0 if now else self._written + INTERVAL_SECONDS - time.monotonic()
            if wait > 0:
                self._write_in(wait)
                return
            if self._later is not None:
                self._later.cancel()
                self._later = None
            write_atomic(self.folder / SWEEP, to_json(self._data()) + "\n")
            self._written = time.monotonic()

    def _write_in(self, seconds: float) -> None:
        if self._later is None:
            self._later = threading.Timer(seconds, self._write_later)
            self._later.daemon = True
            self._later.start()

    def _write_later(self) -> None:
        with suppress(OSError):  # the next write of the sweep itself meets it too, and raises it
            self.write()

    def _data(self) -> dict[str, Any]:
        best = self.best
        return {
            "schema_version": SCHEMA_VERSION,
            "status": self.status,
            "started_at": self._began,
            "written_at": utc_now(),
            "resumes": self._resumes,
            **self._facts,
            "goals": [asdict(goal) for goal in self.goals],
            "best": None if best is None else best.number,
            "trials": [one.facts() for one in self.trials],
        }

    def finish(self, status: str) -> None:
        """Write how the sweep ended, what was found, and the link ``best``."""
        self.status = status
        self.write()
        best = self.best
        if best is None or best.values is None:
            return
        found: dict[str, Any] = {"name": self._facts.get("search", "grid")}
        if len(self.goals) > 1:
            found["solutions"] = [
                {"params": _params(one), "values": one.values} for one in pareto_front(self.trials, self.goals)
            ]
        else:
            found |= {"best_params": _params(best), "best_value": best.values[0]}
        write_atomic(self.folder / "optimization_results.yaml", yaml.safe_dump(found, sort_keys=False))
        point_to(self.folder / BEST, best.name)


def _params(trial: Trial) -> dict[str, Any]:
    """Return the values of a trial by key."""
    return {name: yaml.safe_load(text) for name, text in trial.params.items()}


def load_record(folder: Path) -> SweepRecord:
    """Return the record of a sweep, to look at.

    Raises:
        ConfigError: There is none.
    """
    record = SweepRecord(folder, {})
    with _whole(folder / SWEEP):
        record.status = str(read_sweep(folder)["status"])
    return record


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None


def _damaged(path: Path, why: str) -> DamagedSweepError:
    hint = f"To rebuild it from the runs of its trials: rtrain resume {shlex.quote(shown(path.parent))}"
    return DamagedSweepError(f"{shown(path)} is damaged: {why}", hint)


def read_sweep(folder: Path) -> dict[str, Any]:
    """Return what ``sweep.json`` says.

    Raises:
        ConfigError: There is none, it is of another version, or a trial's name leads out of the folder.
    """
    path = folder / SWEEP
    try:
        data: dict[str, Any] = read_json(folder, SWEEP)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"{shown(folder)} is not a sweep: there is no {shown(path)}.", _sweeps_nearby(folder)
        ) from None
    except (StrangeFileError, ForbiddenFileError):
        raise
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from None
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    with _whole(path):
        version, names = data.get("schema_version"), [str(one["name"]) for one in data.get("trials", [])]
    if version != SCHEMA_VERSION:
        raise ConfigError(f"{path} was written by another version of rtrain.", "Use that version to resume it.")
    outside = [name for name in names if not is_plain_name(name)]
    if outside:
        raise ConfigError(f"{path} can't be used: the trial {outside[0]!r} would be outside the folder of the sweep.")
    return data


def _sweeps_nearby(folder: Path) -> str:
    found = [folder.parent] if is_sweep(folder.parent) else []
    for place in (folder, folder.parent.parent):  # sweeps are siblings of the folder that holds a run
        newest_first = sorted(place.glob(f"*/{SWEEP}"), key=lambda path: path.stat().st_mtime, reverse=True)
        found = found or [path.parent for path in newest_first[:MOST_NEARBY]]
    return did_you_mean(*found) if found else "To list runs and sweeps: rtrain runs ls"


def is_sweep(folder: Path) -> bool:
    """Tell whether the folder is that of a sweep."""
    return os.path.lexists(folder / SWEEP)


def pareto_front(trials: Sequence[Trial], goals: Sequence[Objective]) -> list[Trial]:
    """Return the trials that no other one beats in a goal without losing in another one."""
    known = [one for one in trials if one.values is not None and one.status != Status.FAILED]
    return [one for one in known if not any(_dominates(other, one, goals) for other in known)]


def _dominates(one: Trial, other: Trial, goals: Sequence[Objective]) -> bool:
    pairs = list(zip(goals, one.values or (), other.values or (), strict=True))
    return any(goal.is_better(a, b) for goal, a, b in pairs) and not any(goal.is_better(b, a) for goal, a, b in pairs)


def point_to(link: Path, name: str) -> None:
    """Create a symbolic link to a folder next to it, replacing the previous link."""
    temporary = link.with_name(f".{link.name}-{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(name, target_is_directory=True)
    temporary.replace(link)


def best_of(manifest: Manifest) -> dict[str, Any]:
    """Return the metric of a run's best checkpoint, its mode and value; nothing for a run without one.

    Of boosted trees, ``kept`` are all metrics of that checkpoint: its model holds all rounds before it.
    """
    best = manifest.best or {}
    if not best or Limits.of(manifest).unit != "round":
        return best
    record = best_record(manifest.checkpoints)
    return {**best, "kept": {} if record is None else record["metrics"]}
