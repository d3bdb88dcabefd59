"""How cost grows: with rows, workers, trials, metrics of a step and events."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from measured import RTRAIN, Growth, once, output_of
from of_processes import write_rows

SWEEP = """
import sys, rtrain
words = ["num_workers=1", "trainer.num_boost_round=1", "dataset.limit=60", f"seed=range(0,{sys.argv[1]})"]
rtrain.sweep("xgboost", words)
"""


def growth(
    rows: Sequence[int], workers: Sequence[int], trials: Sequence[int], metrics: Sequence[int], events: Sequence[int]
) -> Iterator[Growth]:
    """The exponent is the steepest slope between neighbouring points on logarithmic axes: 1 is linear, 0 is flat."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _of_processes("rows of a table", rows, lambda count: _fit_on_rows(Path(folder), count))
    mlp = [RTRAIN, "fit", "mlp", "trainer.max_epochs=1"]
    yield from _of_processes("workers", workers, lambda count: [*mlp, f"num_workers={count}"])
    yield from _of_processes("trials", trials, lambda count: [sys.executable, "-c", SWEEP, str(count)])
    yield from _of_reports(metrics, events)


def _of_processes(axis: str, sizes: Sequence[int], command: Callable[[int], Sequence[str]]) -> Iterator[Growth]:
    """Yield the time of whole processes, and the memory of the driver."""
    spent = [once(command(size)) for size in sizes]
    yield Growth("whole process", "s", axis, [*sizes], [one.seconds for one in spent])
    yield Growth("driver's peak memory", "MB", axis, [*sizes], [one.peak_bytes / 1e6 for one in spent])


def _fit_on_rows(folder: Path, num_rows: int) -> list[str]:
    """Return the command that trains one round on so many rows of 28 numbers."""
    file = folder / f"{num_rows}.parquet"
    write_rows(file, num_rows, num_features=28)
    table = ["dataset=parquet", f"dataset.path={file}", "dataset.label=y"]
    return [RTRAIN, "fit", "xgboost", *table, "trainer.num_boost_round=1", "num_workers=0"]


def _of_reports(metrics: Sequence[int], events: Sequence[int], num_reports: int = 1000) -> Iterator[Growth]:
    """Yield what reports cost that have many metrics, and what many of them cost."""
    found = [json.loads(output_of("reporting.py", num_reports, count)) for count in metrics]
    costs = [1e6 * seconds / num_reports for seconds, _, _ in found]
    yield Growth("a report", "us", "metrics of a report", [*metrics], costs)
    found = [json.loads(output_of("reporting.py", count, 3)) for count in events]
    for index, (name, unit) in enumerate(
        (("recording all", "s"), ("driver's peak memory", "MB"), ("reading all", "s"))
    ):
        yield Growth(name, unit, "events", [*events], [one[index] for one in found])
