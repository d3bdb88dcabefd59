"""Plain-text output for sweeps: progress, summary, and ``rtrain sweep show``."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rtrain.config.compose.aliases import split_word
from rtrain.config.files.locations import shown
from rtrain.config.value_types.numeric import is_number
from rtrain.displays.run import PlainLines
from rtrain.errors import RtrainError
from rtrain.history.query.columns import short_key
from rtrain.runs.events import events_file, read_events
from rtrain.runs.filesystem.lock import is_locked
from rtrain.runs.filesystem.plain_files import read_text
from rtrain.runs.labels import read_labels
from rtrain.runs.manifest import MANIFEST, Manifest, read_manifest
from rtrain.runs.signature import is_signed_by_this_account
from rtrain.runs.status import SIGNALLED, TRIAL_OVER, UNFINISHED, WITH_RESULT, Status
from rtrain.sweeps.importance import importance
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial, failure_text
from rtrain.sweeps.repetitions import Repetitions, repeating_keys, repetitions
from rtrain.sweeps.unjudged import NO_MEASURE, judging, measures, metrics_of
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable

MISSING = "-"
LONG_NUMBER = 8
"""Characters beyond which a number that was drawn is shown rounded; the command of the best trial has all of it."""

LONG_MESSAGE = 1000
"""Characters beyond which an error is cut; the manifest of the trial has all of it."""


class PlainSweepDisplay(PlainLines):
    """Plain lines of a sweep: one for each trial that is over."""

    def sweep_started(self, record: SweepRecord, num_trials: int) -> None:
        """Print what starts."""
        self._record = record
        self._print(start_line(record, num_trials))

    def trial_changed(self, trial: Trial) -> None:
        """Print one line when it is over."""
        if is_over(trial):
            self._print(trial_line(trial, self._record))

    def sweep_ended(self, record: SweepRecord) -> None:
        """Print what came of it."""
        self._print("\n".join(end_lines(record)))


def is_over(trial: Trial) -> bool:
    """Tell whether a trial trains no more, for now at least."""
    return trial.status not in UNFINISHED


def start_line(record: SweepRecord, num_trials: int) -> str:
    """Return the line that a sweep begins with."""
    there = sum(one.status in WITH_RESULT for one in record.trials)
    before = f", {there} of them already done" if there else ""
    return f"sweeping {num_trials} trial{'s' if num_trials != 1 else ''}{before} -> {shown(record.folder)}"


def trial_line(trial: Trial, record: SweepRecord) -> str:
    """Return one line on a trial that is over."""
    values = "" if trial.values is None else f"  {values_text(trial, record)}"
    why = f"  ({_cut(trial.reason)})" if trial.status in (Status.FAILED, Status.STOPPED) else ""
    return f"{trial.name}  {trial.status}  {short_words(trial)}{values}  {trial.seconds:.1f} s{why}"


def end_lines(record: SweepRecord) -> list[str]:
    """Return the end of every sweep: result, failures, best trial, folder, next command."""
    counts = Counter(one.status for one in record.trials)
    told = ", ".join(f"{number} {status}" for status, number in counts.items())
    lines = [f"result      {record.status}: {told or 'no trials'}"]
    lines += _failures(record)
    for one in (one for one in record.trials if one.lacks_copy):
        run = shlex.quote(shown(record.folder / one.name))
        lines.append(f"copy        of {one.name} is NOT COMPLETE; once the store works: rtrain runs upload {run}")
    best = record.best
    if best is not None:
        lines.append(f"best        {values_text(best, record)}  {best.what}")
        lines += _mean_line(record)
        lines += _checkpoint_line(record, best)
        lines.append(f"run         {shown(record.folder / best.name)}")
    elif _is_unjudged(record):
        lines.append(f"best        {_no_best(record)}")
    command = "rtrain resume" if _is_unfinished(record) else "rtrain sweep show"
    return [*lines, f"sweep       {shown(record.folder)}", f"next        {command} {shlex.quote(shown(record.folder))}"]


def sweep_report(record: SweepRecord) -> list[str]:
    """Return what there is to say of a sweep: its trials, best first; what mattered; how to train the best one."""
    goals = [goal.metric for goal in record.goals]
    names = short_names(record.trials)
    rows = [_row(one, record, list(names)) for one in _best_first(record)]
    table = _aligned([["trial", "status", *goals, "epoch", "seconds", *names.values()], *rows])
    is_killed = record.status == Status.RUNNING and not is_locked(record.folder)
    damaged = any(row[1] == Status.DAMAGED for row in rows)
    state = "running, but in no process on this machine" if is_killed else record.status
    lines = [f"{shown(record.folder)}: {state}", *_label_lines(record.folder), "", *table]
    if failures := _failures(record):
        lines += ["", *failures]
    lines += _mean_lines(record)
    best = record.best
    if best is not None:
        lines += [*_importance_lines(record), "", f"best: {best.name}", f"  {_command(record.folder / best.name)}"]
    elif _is_unjudged(record):
        lines += ["", f"best: {_no_best(record)}"]
    if is_killed or (record.status != Status.RUNNING and (_is_unfinished(record) or failures or damaged)):
        lines += ["", f"to resume: rtrain resume {shlex.quote(shown(record.folder))}"]
    return lines


def _label_lines(folder: Path) -> list[str]:
    labels = read_labels(folder)
    told = {"tags": ", ".join(labels.tags), "note": labels.note}
    return [f"{name}: {printable(text)}" for name, text in told.items() if text]


def _is_unfinished(record: SweepRecord) -> bool:
    return any(one.status not in TRIAL_OVER for one in record.trials) or record.status in SIGNALLED


def short_names(trials: Sequence[Trial]) -> dict[str, str]:
    """Return what varies between trials, by key: as much of its end as tells it from the others."""
    keys = list(dict.fromkeys(key for one in trials for key in one.params))
    return {key: short_key(key, keys) for key in keys}


def short_words(trial: Trial) -> str:
    """Return what is particular to a trial, by short names, in one line."""
    return " ".join(f"{name}={_short_value(trial.params[key])}" for key, name in short_names([trial]).items())


def _short_value(text: str) -> str:
    return number_text(float(text)) if len(text) > LONG_NUMBER and is_number(text) else text


def _failures(record: SweepRecord) -> list[str]:
    lines = []
    for one in record.trials:
        if one.error is not None:
            told = _cut(failure_text(one.error)).replace("\n", "\n            ")
            lines.append(f"failed      {one.name}  {one.what}\n            {told}")
    return lines


def _cut(text: str) -> str:
    return text if len(text) <= LONG_MESSAGE else f"{text[:LONG_MESSAGE]}... ({len(text):,} characters)"


def _is_unjudged(record: SweepRecord) -> bool:
    return any(one.status in WITH_RESULT for one in record.trials)


def _no_best(record: SweepRecord) -> str:
    wanted = [goal.metric for goal in record.goals]
    over = next(one for one in record.trials if one.status in WITH_RESULT)
    there = metrics_of(record.folder / over.name)
    why = f"no trial has reported {' and '.join(wanted)}" if wanted else "sweep.metric is not set"
    if not wanted and there is not None and not measures(there):
        return f"unknown: {NO_MEASURE}"
    return f"unknown: {why}" + (f"; {judging(record.folder, list(there), wanted)}" if there else "")


def values_text(trial: Trial, record: SweepRecord) -> str:
    """Return what a trial reached, by metric."""
    pairs = zip(record.goals, trial.values or (), strict=False)
    return "  ".join(f"{goal.metric} {number_text(value)}" for goal, value in pairs)


def _best_first(record: SweepRecord) -> list[Trial]:
    sign = -1 if record.goals and record.goals[0].mode == "max" else 1
    return sorted(record.trials, key=lambda one: (one.values is None, sign * (one.values or [0.0])[0], one.number))


def _row(trial: Trial, record: SweepRecord, keys: list[str]) -> list[str]:
    values = [MISSING] * len(record.goals) if trial.values is None else [number_text(value) for value in trial.values]
    params = [_short_value(trial.params.get(key, MISSING)) for key in keys]
    status = Status.DAMAGED if _is_damaged(record.folder / trial.name) else trial.status
    return [trial.name, status, *values, str(trial.epoch), f"{trial.seconds:.1f}", *params]


def _is_damaged(run_dir: Path) -> bool:
    """Return whether a run has an unreadable manifest: the sweep trains it again when it is resumed."""
    try:
        read_manifest(run_dir)
    except RtrainError:
        return (run_dir / MANIFEST).exists()
    return False


def _aligned(rows: list[list[str]]) -> list[str]:
    shown_rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown_rows, strict=False)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)).rstrip() for row in shown_rows
    ]


def _mean_line(record: SweepRecord) -> list[str]:
    """Return what the best of the repeated trials reach together: the best single one was lucky, too."""
    repeated = repetitions(record)
    if not repeated:
        return []
    first = repeated[0]
    reached = "  ".join(f"{goal.metric} {text}" for goal, text in zip(record.goals, _mean_texts(first), strict=True))
    what = "".join(f"  {key}={value}" for key, value in first.params.items())
    over = " and ".join(repeating_keys(record.trials))
    return [f"mean        {reached}{what}  ({len(first.values)} trials, by {over})"]


def _mean_lines(record: SweepRecord) -> list[str]:
    repeated = repetitions(record)
    if not repeated:
        return []
    names = short_names(record.trials)
    keys = [key for key in names if any(key in one.params for one in repeated)]
    rows = [
        [*_mean_texts(one), str(len(one.values)), *(_short_value(one.params.get(key, MISSING)) for key in keys)]
        for one in repeated
    ]
    head = [*(goal.metric for goal in record.goals), "trials", *(names[key] for key in keys)]
    over = " and ".join(repeating_keys(record.trials))
    return [
        "",
        f"mean ± standard deviation of trials that differ in {over} alone, best mean first:",
        *_aligned([head, *rows]),
    ]


def _mean_texts(repeated: Repetitions) -> list[str]:
    """Return the mean and the standard deviation by goal."""
    pairs = zip(repeated.means, repeated.deviations, strict=True)
    return [number_text(mean) if one is None else f"{number_text(mean)} ± {one:.2g}" for mean, one in pairs]


def _importance_lines(record: SweepRecord) -> list[str]:
    known = [one for one in record.trials if one.values is not None and one.status in WITH_RESULT]
    columns: dict[str, list[str]] = {}
    for one in known:
        for name, value in one.params.items():
            columns.setdefault(name, []).append(value)
    whole = {name: texts for name, texts in columns.items() if len(texts) == len(known)}
    is_cut = any(one.status == Status.STOPPED for one in known)
    shortest = min(one.epoch for one in known) if is_cut else None
    values = [(one.values or [math.nan])[0] if shortest is None else _value_at(one, shortest, record) for one in known]
    shares = importance(whole, values) if all(map(math.isfinite, values)) else {}
    if not shares or all(share is None for share in shares.values()):
        return []
    metric = record.goals[0].metric + ("" if shortest is None else f" at epoch {shortest}, where some were stopped,")
    told = _aligned([[f"  {name}", "?" if share is None else f"{share:.0%}"] for name, share in shares.items()])
    return ["", f"share of the variation in {metric} that each parameter explains alone:", *told]


def _value_at(trial: Trial, epoch: int, record: SweepRecord) -> float:
    """Return what a trial reported last of the first goal up to an epoch that all have reached; NaN for nothing."""
    events = read_events(events_file(record.folder / trial.name))
    values = [one.metrics.get(record.goals[0].metric) for one in events if one.epoch <= epoch]
    return next((value for value in reversed(values) if value is not None), math.nan)


def _checkpoint_line(record: SweepRecord, best: Trial) -> list[str]:
    """Return by what the best trial chose its best checkpoint, where that is another metric than the sweep's."""
    run_dir, goal = record.folder / best.name, record.goals[0].metric
    if not (run_dir / MANIFEST).exists() or _is_damaged(run_dir):
        return []
    manifest = read_manifest(run_dir)
    chosen = manifest.best or {}
    is_whole = chosen.get("epoch") == manifest.model.get("num_rounds")  # of boosted trees: nothing was chosen
    if (monitor := chosen.get("monitor")) in (None, goal) or is_whole:
        return []
    return [f"checkpoint  its best by {monitor}; to select it by {goal} as well: run.checkpoint.best.monitor={goal}"]


def _command(run_dir: Path) -> str:
    if not (run_dir / MANIFEST).exists():
        return f"(its run directory {shown(run_dir)} is gone)"
    if _is_damaged(run_dir):
        return f"({shown(run_dir / MANIFEST)} is damaged)"
    manifest = read_manifest(run_dir)
    if not _is_own(run_dir, manifest):
        return "(its command is not shown: another account created the run, or its config.yaml was changed)"
    if not manifest.lineage or not manifest.resumes:
        changed = [text for one in manifest.resumes for text in one.get("changed", ())]
        then = f"\n  (then resumed with {', '.join(changed)})" if changed else ""
        return f"{_without_sweep(manifest.command)}{then}"
    note = "it continued from other trials' checkpoints, listed in its manifest; from scratch, with its last values:"
    return f"({note})\n  {_without_sweep(manifest.resumes[-1].get('command', []))}"


def _is_own(run_dir: Path, manifest: Manifest) -> bool:
    try:
        return is_signed_by_this_account(read_text(run_dir, "config.yaml"), manifest.project_root)
    except (OSError, ValueError):
        return False


def _without_sweep(command: list[str]) -> str:
    return shlex.join(
        word
        for word in command
        if not split_word(word)[1].startswith(("sweep.", "sweep/")) and split_word(word)[1] != "sweep"
    )
