"""Sweeps on the command line: ``rtrain fit --multirun``, and ``rtrain sweep show``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rtrain.config.locations import shown

if TYPE_CHECKING:
    from rtrain.config.session import Session
    from rtrain.sweeps.record import SweepRecord
    from rtrain.sweeps.trial import Trial

EXIT_CODES = {"interrupted": 130, "preempted": 143, "failed": 1}


def resume_sweep(folder: Path, overrides: Sequence[str], *, trust: bool) -> None:
    """Go on with a sweep; leave with the exit code that tells how it ended."""
    from rtrain.sweeps.folder import resuming_session

    with resuming_session(folder, overrides, trust=trust) as session:
        train_sweep(session, folder.absolute())


def train_sweep(session: Session, folder: Path | None = None) -> None:
    """Train what a command with ``--multirun`` asks for; leave with the exit code that tells how it ended."""
    from rtrain.sweeps.sweep import run_sweep

    record = run_sweep(session, PlainSweepDisplay(), folder)
    if code := EXIT_CODES.get(record.status, 0):
        raise typer.Exit(code)


class PlainSweepDisplay:
    """Plain lines, for logs and pipes: one for each trial that is over."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr

    def stage(self, name: str) -> None:
        """Say nothing: stages last seconds."""

    def notice(self, text: str) -> None:
        """Print a warning line."""
        print(f"note: {text}", file=self._err, flush=True)

    def sweep_started(self, record: SweepRecord, num_trials: int) -> None:
        """Print what starts."""
        self._record, self._num_trials = record, num_trials
        there = sum(one.status in ("succeeded", "stopped") for one in record.trials)
        before = f", {there} of them there already" if there else ""
        print(f"sweeping {num_trials} trials{before} -> {shown(record.folder)}", file=self._out, flush=True)

    def trial_changed(self, trial: Trial) -> None:
        """Print one line when it is over."""
        if trial.status not in ("planned", "running", "paused"):
            print(trial_line(trial, self._record), file=self._out, flush=True)

    def sweep_ended(self, record: SweepRecord) -> None:
        """Print what came of it."""
        print("\n".join(end_lines(record)), file=self._out, flush=True)


def trial_line(trial: Trial, record: SweepRecord) -> str:
    """Return one line on a trial that is over."""
    values = "" if trial.values is None else "  " + _values_text(trial, record)
    what = _what(trial)
    why = f"  ({trial.reason})" if trial.status in ("failed", "stopped") else ""
    return f"{trial.name}  {trial.status}  {what}{values}  {trial.seconds:.1f} s{why}"


def end_lines(record: SweepRecord) -> list[str]:
    """Return the end of every sweep: result, failures, best trial, folder, next command."""
    counts: dict[str, int] = {}
    for one in record.trials:
        counts[one.status] = counts.get(one.status, 0) + 1
    lines = [f"result      {record.status}: " + ", ".join(f"{number} {status}" for status, number in counts.items())]
    lines += [
        f"failed      {one.name} {_what(one)}: {one.error['type']}: {one.error['message']}"
        for one in record.trials
        if one.error is not None
    ]
    best = record.best
    if best is not None:
        lines.append(f"best        {_values_text(best, record)}  {_what(best)}")
        lines.append(f"run         {shown(record.folder / best.name)}")
    lines.append(f"sweep       {shown(record.folder)}")
    return lines


def _what(trial: Trial) -> str:
    return " ".join(word.lstrip("+") for word in trial.overrides)


def _values_text(trial: Trial, record: SweepRecord) -> str:
    pairs = zip(record.goals, trial.values or (), strict=False)
    return "  ".join(f"{goal.metric} {value:.4g}" for goal, value in pairs)
