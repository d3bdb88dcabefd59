"""Train a run again, with its config and seed, and compare: are code, data and metrics the same?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtrain.runs.manifest import Manifest
from rtrain.runs.observer import Observer
from rtrain.runs.origin import changes, code_changes, code_of_run
from rtrain.runs.run import Run

TIMES = ("_per_second", "_seconds")
"""Endings of metrics that measure time, which no two runs have in common."""


@dataclass(frozen=True)
class Reproduction:
    """A run, and the one that it was repeated by."""

    before: Run
    after: Run
    code: Mapping[str, tuple[Any, Any]]
    """What differs in the code and the versions, before and after, by name."""
    data: Mapping[str, tuple[Any, Any]]
    metrics: Mapping[str, tuple[float | None, float | None]]
    """The latest values of each metric that is compared, before and after; those of times are not."""
    went_on: bool
    """Whether the repetition trained longer: then values of the same steps are compared."""
    not_compared: Mapping[str, int]
    """Metrics of a run that ended early, with the step of their latest value, of which the repetition has none."""

    @property
    def differing(self) -> dict[str, float]:
        """The relative difference of each metric that is not exactly equal; infinite where one of the two lacks it."""
        found = {name: _difference(*values) for name, values in self.metrics.items()}
        return {name: one for name, one in found.items() if one != 0.0}


def reproduce(run_dir: Path, overrides: Sequence[str], observer: Observer, *, trust: bool = False) -> Reproduction:
    """Train a run's own config again, from the beginning, into a new run directory.

    Args:
        run_dir: The run.
        overrides: What is to change all the same, ``num_workers=0`` say.
        observer: Shows the new run.
        trust: Run what its config names, even if another account wrote it.

    Raises:
        ConfigError: The config can't be read, or another account wrote it.
        TrainingError: Training failed.
    """
    from rtrain.training.fit import fit_session, resuming_session

    before = Run.load(run_dir)
    with resuming_session(run_dir, overrides, trust=trust, verb="runs reproduce") as session:
        session.check().conf.run.resume = "never"
        after = fit_session(session, observer)
    return compare_runs(before, after)


def compare_runs(before: Run, after: Run) -> Reproduction:
    """Return what is the same, and what is not, between a run and its repetition."""
    code, data = _code(before, after), changes(_data(before.manifest), _data(after.manifest))
    not_compared, went_on = {}, after.manifest.step > before.manifest.step
    if went_on:
        latest = {name: (one.step, value) for one in before.events() for name, value in one.metrics.items()}
        again = {(name, one.step): value for one in after.events() for name, value in one.metrics.items()}
        metrics = {name: (value, again[name, step]) for name, (step, value) in latest.items() if (name, step) in again}
        not_compared = {name: step for name, (step, _) in latest.items() if name not in metrics}
    else:
        names = dict.fromkeys([*before.metrics, *after.metrics])
        metrics = {name: (before.metrics.get(name), after.metrics.get(name)) for name in names}
    metrics = {name: values for name, values in metrics.items() if not name.endswith(TIMES)}
    return Reproduction(before, after, code, data, metrics, went_on, not_compared)


def _code(before: Run, after: Run) -> dict[str, tuple[Any, Any]]:
    """Return what differs in the code that trained the run, also until it was resumed by other code."""
    again = code_of_run(after.path, after.manifest)
    found = code_changes(code_of_run(before.path, before.manifest), again)
    for one in before.manifest.resumes:
        earlier: Mapping[str, Any] = one.get("code_before") or {}
        found |= {
            f"{name} until {one.get('time')}": (was, again.get(name))
            for name, was in earlier.items()
            if was != again.get(name)
        }
    return found


def _data(manifest: Manifest) -> dict[str, Any]:
    data = manifest.dataset or {}
    return {name: data.get(name) for name in ("name", "fingerprint", "num_rows")}


def _difference(before: float | None, after: float | None) -> float:
    if before == after:
        return 0.0
    if before is None or after is None:
        return math.inf
    return abs(before - after) / max(abs(before), abs(after))
