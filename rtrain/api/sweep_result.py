"""What came of a sweep: its trials, the best one, a table; and its folder, as a path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from rtrain.config.calls.overrides import value_of
from rtrain.config.compose.aliases import split_word
from rtrain.runs.run import Run
from rtrain.sweeps.record.sweep_record import SweepRecord, load_record
from rtrain.sweeps.record.trial import Trial, as_typed, failure_text
from rtrain.text.numbers import number_text

MOST_SHOWN = 10
"""Trials that a representation lists."""


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """One trial of a sweep."""

    number: int
    """From 0, in the order of the plan."""
    params: Mapping[str, Any]
    """What is particular to it: values by key."""
    status: str
    """``succeeded``, ``stopped`` (by the scheduler), ``failed``, ``interrupted``, or what it waits for."""
    values: Mapping[str, float]
    """What it reached, by metric; empty if nothing is known."""
    epoch: int
    seconds: float
    error: str | None
    """Of a failed one, in a line."""
    path: Path
    """Its run directory."""

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def run(self) -> Run:
        """Its run.

        Raises:
            RtrainError: It has not begun, or its run directory is gone.
        """
        return Run.load(self.path)


class SweepResult(os.PathLike[str]):
    """A sweep as its folder has it. It stands for the path of the folder: ``result / "sweep.json"`` is a file.

    Args:
        path: The folder.

    Raises:
        RtrainError: It is not the folder of a sweep.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @cached_property
    def _record(self) -> SweepRecord:
        return load_record(self.path)

    @property
    def status(self) -> str:
        """``succeeded``, ``failed`` (a trial has), ``interrupted`` or ``preempted``."""
        return self._record.status

    @property
    def trials(self) -> list[TrialResult]:
        """All trials, in the order of their numbers."""
        return [self._result_of(trial) for trial in self._record.trials]

    @property
    def best(self) -> Run | None:
        """The run of the best trial, by the metric of the sweep; None if nothing is known of any."""
        best = self._record.best
        return None if best is None else Run.load(self.path / best.name)

    def frame(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row for each trial, indexed by its number.

        Its columns are ``status``, one for each key that varies, one for each metric of the sweep, ``epoch``,
        ``seconds``, ``error`` and ``path``.
        """
        from rtrain.api.frames import trials_frame

        return trials_frame(self.trials)

    def _result_of(self, trial: Trial) -> TrialResult:
        metrics = [goal.metric for goal in self._record.goals]
        return TrialResult(
            number=trial.number,
            params={split_word(word)[1]: value_of(word) for word in trial.overrides},
            status=trial.status,
            values=dict(zip(metrics, trial.values or (), strict=False)),
            epoch=trial.epoch,
            seconds=trial.seconds,
            error=None if trial.error is None else failure_text(trial.error).split("\n")[0],
            path=self.path / trial.name,
        )

    def __repr__(self) -> str:
        record = self._record
        lines = [f"Sweep {self.path.name}: {record.status}, {len(record.trials)} trials"]
        best = record.best
        if best is not None:
            values = zip(record.goals, best.values or (), strict=False)
            reached = ", ".join(f"{goal.metric} {number_text(value)}" for goal, value in values)
            lines.append(f"  best    {reached} with {as_typed(best.overrides)}")
        return "\n".join([*lines, f"  folder  {self.path}"])

    def _repr_html_(self) -> str:
        table: str = self.frame().drop(columns="path").head(MOST_SHOWN).to_html()
        return f"<pre>{escape(repr(self))}</pre>{table}"

    # It was a path before it was a result: callers use it as one.

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str | os.PathLike[str]) -> Path:
        return self.path / name

    def __eq__(self, other: object) -> bool:
        return self.path == (other.path if isinstance(other, SweepResult) else other)

    def __hash__(self) -> int:
        return hash(self.path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in dir(Path):
            raise AttributeError(f"'SweepResult' object has no attribute {name!r}")
        return getattr(self.path, name)
