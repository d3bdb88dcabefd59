"""The text for a sweep without a measure of its trials: which key sets it, and its possible values."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rtrain.config.did_you_mean import to_try
from rtrain.config.files.locations import shown
from rtrain.config.schema import RtrainConf
from rtrain.errors import RtrainError
from rtrain.runs.manifest import read_manifest
from rtrain.runs.status import WITH_RESULT
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.trainers.loops.directions import known_direction, monitored, nearest_metric
from rtrain.trainers.registry import has_own_loop
from rtrain.training.reproduction import TIMES

COUNTERS = frozenset({"epoch", "step", "global_step", "iteration", "training_iteration", "lr", "learning_rate"})
"""Counters that loops report, which measure no quality."""
NO_MEASURE = "no trial has reported a measure of quality"


class MetricNotes:
    """Tells, once, which metrics there are, where a sweep has none to judge by or one that is never reported.

    Args:
        conf: What the trials have in common.
        record: Of the sweep.
        notice: Takes a line for the user.
    """

    def __init__(self, conf: RtrainConf, record: SweepRecord, notice: Callable[[str], None]) -> None:
        self._record, self._notice = record, notice
        self._has_own_loop = has_own_loop(conf.trainer)
        best = monitored(conf.run.checkpoint.best, conf.trainer)
        # Declared training chooses a metric by itself.
        self._lacks_metric = not record.goals and self._has_own_loop and best is None
        self._has_listed = False

    def begin(self) -> None:
        """Say before the first trial that none will be called the best."""
        if self._lacks_metric:
            self._notice(
                "no best trial will be chosen: only the loop knows what it reports. Set the metric that decides: "
                "sweep.metric=NAME sweep.mode=min (or max)"
            )

    def hear(self, trial: Trial, names: Iterable[str]) -> None:
        """Offer the metrics of the first report where the sweep has none."""
        if self._lacks_metric and not self._has_listed and (there := list(names)):
            self._list(
                f"{trial.name} reports {', '.join(there)}; one of them can be sweep.metric, even after the sweep", there
            )

    def over(self, trial: Trial) -> None:
        """Name the metrics of a trial that came to its end without what the sweep judges by."""
        wanted, metrics = [goal.metric for goal in self._record.goals], self._metrics_of(trial)
        if strange := [one for one in wanted if metrics.get(one, 0) is None]:
            return self._notice(f"{trial.name} is not ranked: its {' and '.join(strange)} never was a finite number")
        if self._has_listed:
            return None
        there = list(metrics)
        if not wanted and not measures(there):
            hold_out = "" if self._has_own_loop else "; to hold out rows to measure with: dataset.split.val=0.1"
            return self._list(f"there is no best trial: {NO_MEASURE}{hold_out}", there)
        what = "there is no best trial: set sweep.metric"
        if wanted:
            what = f"{trial.name} has never reported {' and '.join(wanted)} (sweep.metric)"
        others = [self._metrics_of(one) for one in self._record.trials if one.status in WITH_RESULT]
        shared = [name for name in there if all(name in one for one in others)]  # trials of another trainer count too
        is_known = wanted and any(all(name in one for name in wanted) for one in others)
        better = shared if measures(shared) else [] if is_known else there
        return self._list(f"{what}; available: {', '.join(there) or 'no metrics'}", better, wanted)

    def _metrics_of(self, trial: Trial) -> Mapping[str, float | None]:
        return metrics_of(self._record.folder / trial.name) or {}

    def _list(self, what: str, there: Sequence[str], wanted: Sequence[str] = ()) -> None:
        self._has_listed = True
        self._notice(what + (f"\n  {judging(self._record.folder, there, wanted)}" if there else ""))


def metrics_of(run_dir: Path) -> Mapping[str, float | None] | None:
    """Return the newest metrics of a run; None if it has no manifest, or a damaged one."""
    try:
        return read_manifest(run_dir).metrics
    except RtrainError:
        return None


def measures(names: Iterable[str]) -> list[str]:
    """Return the metrics that may measure quality: not those that count, nor times."""
    last = ((name, name.rpartition("/")[2]) for name in names)
    return [name for name, word in last if word not in COUNTERS and not word.endswith(TIMES)]


def judging(folder: Path, names: Sequence[str], wanted: Sequence[str] = ()) -> str:
    """Return a hint with the command that ranks the existing trials by a metric they have reported.

    Args:
        folder: Of the sweep.
        names: Of the metrics.
        wanted: The metric that the sweep was given.
    """
    near = filter(None, (nearest_metric(one, names) for one in wanted))
    likely = [one for one in names if known_direction(one)] or measures(names) or names
    metric = next(near, None) or next((one for one in likely if "train" not in one), likely[0])
    command = f"rtrain resume {shlex.quote(shown(folder))} sweep.metric={metric}"
    return to_try(command if known_direction(metric) else f"{command} sweep.mode=max")
