"""One run on a screen: how it ended, its metrics, checkpoints, attempts and timings."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from rtrain.config.diagnostics.own_lines import render_lines
from rtrain.config.files.locations import shown
from rtrain.displays.history.curves import sparkline
from rtrain.displays.history.texts import broken_lines
from rtrain.errors import RtrainError
from rtrain.history.query.quantities import age_text, duration_text, size_text, time_text
from rtrain.history.rows import ERRORS, Row
from rtrain.history.series import Points, read_series
from rtrain.run_lines import files_text, next_command
from rtrain.runs.manifest import Manifest, read_manifest
from rtrain.runs.origin import DIFF, name_of_latest
from rtrain.runs.status import STYLES, Status
from rtrain.text.numbers import number_text
from rtrain.text.printable import printable
from rtrain.text.wrapping import wrapped

Lines = Iterator[str | Text]
LABEL = 12
"""Characters of what stands before each fact."""
MOST_SHOWN = 10
"""Checkpoints, attempts and resumes that are shown, the latest ones."""
LONGEST_CURVE = 60


def run_report(row: Row, width: int) -> list[str | Text]:
    """Return what there is to say about a run.

    Args:
        row: The run, or the trial.
        width: Characters of a line.
    """
    try:
        return _known_lines(row, read_manifest(row.path), width)
    except RtrainError as error:
        problem = str(row.get("problem") or error.message)
    except ERRORS as error:
        problem = f"this version of rtrain can't read its manifest: {error!r}"
    return [*_head(row), *_fact("problem", problem, width), *_labels(row, width)]


def _known_lines(row: Row, manifest: Manifest, width: int) -> list[str | Text]:
    parts = (
        _head(row),
        _ending(row, manifest, width),
        _origin(row, manifest, width),
        _labels(row, width),
        _metrics(row.path, manifest, width),
        _checkpoints(manifest),
        _fact("files", files_text(manifest.files, row.path) if manifest.files else "", width),
        _attempts(manifest, width),
        _timings(manifest),
        _fact("next", _next(row, manifest), width),
    )
    return [line for part in parts for line in part]


def _next(row: Row, manifest: Manifest) -> str:
    """Return what a user probably does next: attach to a run that is still trained."""
    if row.status == Status.RUNNING:
        return shlex.join(["rtrain", "runs", "attach", shown(row.path)])
    command = next_command(row.path, manifest)
    return "" if command.startswith("rtrain runs show ") else command


def _head(row: Row) -> Lines:
    took = row.get("seconds")
    status = Text(row.status, STYLES.get(row.status, ""))
    line = Text.assemble((printable(row.name), "bold"), "  ", printable(row.id), "  ", status)
    yield line.append("" if took is None else f" after {duration_text(took)}")
    yield f"{'folder':<{LABEL}}{shown(row.path)}"


def _ending(row: Row, manifest: Manifest, width: int) -> Lines:
    """Yield why the run ended; of a failure, with the user's own last lines."""
    if row.status == Status.KILLED:
        from rtrain.training.recording import (
            how_it_was_cut_off,  # only where it is needed, as it imports half of rtrain
        )

        yield from _fact("ended", how_it_was_cut_off(row.path, manifest) or "", width)
    elif manifest.exit_reason and manifest.status != Status.FAILED:
        yield from _fact("ended", manifest.exit_reason, width)
    error = manifest.error
    if not isinstance(error, Mapping):
        return
    message = str(error.get("message") or manifest.exit_reason or "")
    kind = str(error.get("type") or "error")
    told = message if message.startswith(kind) else f"{kind}: {message}"
    yield from _fact("failed", told, width)
    if error.get("rank") is not None and len(manifest.workers) > 1:
        yield from _fact("on rank", str(error["rank"]), width)
    yield from (printable(f"{'':<{LABEL}}{line}") for line in _frames(error.get("frames")))


def _frames(frames: Any) -> list[str]:
    try:
        return render_lines(frames, folded=False) if frames else []
    except (TypeError, KeyError, AttributeError):  # of another version of rtrain, or of whoever wrote the file
        return []


def _origin(row: Row, manifest: Manifest, width: int) -> Lines:
    """Yield what was asked for, and where it ran."""
    if row.started:
        age = age_text(float(row.get("age") or 0.0))
        yield from _fact(
            "started", f"{time_text(row.started)}, {age} ago, on {row.get('host') or 'an unknown host'}", width
        )
    yield from wrapped(f"{'command':<{LABEL}}{shlex.join(manifest.command)}", width).split("\n")
    data = manifest.dataset or {}
    rows = ", ".join(f"{count:,} {split}" for split, count in _items(data.get("num_rows")))
    yield from _fact("data", f"{data.get('name')}: {rows}" if rows else str(row.get("dataset") or ""), width)
    workers = manifest.resources.get("num_workers")
    place = "in one process" if workers == 0 else f"on {workers} worker{'' if workers == 1 else 's'}"
    yield from _fact("trainer", f"{row.get('trainer')} {place}, seed {manifest.seed}", width)
    git = manifest.git or {}
    if git.get("commit"):
        name = name_of_latest(DIFF, manifest)
        where = f" ({name})" if (row.path / name).is_file() else ""
        dirty = f", with changes that were not committed{where}" if git.get("dirty") else ""
        yield from _fact("code", f"commit {str(git['commit'])[:10]}{dirty}", width)
    yield from _fact("parent", str(manifest.parent_run or ""), width)


def _labels(row: Row, width: int) -> Lines:
    yield from _fact("tags", ", ".join(map(str, row.get("tags") or ())), width)
    yield from _fact("note", str(row.get("note") or ""), width)


def _metrics(run_dir: Path, manifest: Manifest, width: int) -> Lines:
    series = read_series(run_dir)
    names = list(dict.fromkeys([*manifest.metrics, *series]))
    if not names:
        return
    monitored = (manifest.best or {}).get("monitor")
    names.sort(key=lambda name: (name != monitored, name.startswith("train/")))
    rows = [["metric", "last", "lowest", "highest"], *(_metric(name, manifest, series.get(name, [])) for name in names)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = min(LONGEST_CURVE, width - sum(widths) - 2 * len(widths))
    yield ""
    yield Text(_aligned(rows[0], widths), style="bold")
    for name, cells in zip(names, rows[1:], strict=True):
        curve = sparkline(series.get(name, []), left) if left > 0 else ""
        yield Text(_aligned(cells, widths), "" if name != monitored else "bold").append(f"  {curve}", "cyan")
    if (best := manifest.best) is not None and best.get("value") is not None:
        place = f"at epoch {best['epoch']}, step {best['step']}"
        yield f"best: {printable(str(monitored))} {number_text(best['value'])} {place}"


def _metric(name: str, manifest: Manifest, points: Points) -> list[str]:
    finite = [value for _, value in points if math.isfinite(value)]
    last = points[-1][1] if points else manifest.metrics.get(name)  # events are written first
    ends = (min(finite), max(finite)) if finite else (None, None)
    return [printable(name), *(number_text(value) for value in (last, *ends))]


def _checkpoints(manifest: Manifest) -> Lines:
    if not manifest.checkpoints:
        return
    yield ""
    yield Text("checkpoints", style="bold")
    yield from _older(manifest.checkpoints)
    for record in manifest.checkpoints[-MOST_SHOWN:]:
        best = "  best" if manifest.best_checkpoint == f"checkpoints/{record['name']}" else ""
        size = size_text(record.get("size_bytes") or 0)
        yield printable(f"  {record['name']}  {size}{best}")


def _attempts(manifest: Manifest, width: int) -> Lines:
    """Yield each start of the workers, and each time the run was resumed, where there is more than the one."""
    if len(manifest.attempts) > 1 or any("ended_because" in one for one in manifest.attempts):
        yield ""
        yield Text("attempts", style="bold")
        yield from _older(manifest.attempts)
        for one in manifest.attempts[-MOST_SHOWN:]:
            why = one.get("ended_because") or {}
            start = one.get("from_checkpoint") or "the start"
            ended = f": {why.get('kind')}, {why.get('message')}" if why else ""
            yield from broken_lines(f"{_moment(one.get('started_at'))} from {start}{ended}", width, "  ")
    if manifest.resumes:
        yield ""
        yield Text("resumed", style="bold")
        yield from _older(manifest.resumes)
        for one in manifest.resumes[-MOST_SHOWN:]:
            command = shlex.join(one.get("command") or ())
            was = one.get("status_before")
            before = f"  (it was {Status.KILLED if was == Status.RUNNING else was})" if was else ""
            yield from broken_lines(f"{_moment(one.get('time'))} {command}{before}", width, "  ")


def _older(entries: Sequence[Any]) -> Lines:
    if len(entries) > MOST_SHOWN:
        yield f"  {len(entries) - MOST_SHOWN} earlier ones"


def _moment(time: Any) -> str:
    return str(time or "")[:19].replace("T", " ")


def _timings(manifest: Manifest) -> Lines:
    parts = [f"{name} {duration_text(seconds)}" for name, seconds in _items(manifest.timings_seconds)]
    if parts:
        yield ""
        yield f"{'timings':<{LABEL}}{', '.join(parts)}"


def _items(mapping: Any) -> list[tuple[str, Any]]:
    known = mapping.items() if isinstance(mapping, Mapping) else ()
    return [(str(name), value) for name, value in known if isinstance(value, int | float)]


def _fact(label: str, text: str, width: int) -> Lines:
    """Yield a fact with its label before it; nothing if there is nothing to say."""
    for number, line in enumerate(broken_lines(text, width - LABEL) if text else ()):
        yield f"{label if number == 0 else '':<{LABEL}}{line}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        text.ljust(size) if at == 0 else text.rjust(size)
        for at, (text, size) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *rest])
