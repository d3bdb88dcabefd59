"""The page of measurements, ``docs/benchmarks.md``, is made of ``docs/benchmarks.json``: the newest of each suite."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import plot
from measured import Growth, Row

TITLES = {
    "startup": "Start-up",
    "whole": "Whole runs",
    "ready": "After rtrain up",
    "epochs": "Epochs in memory",
    "characters": "A character GPT",
    "streamed": "Streamed tables",
    "images": "Images",
    "texts": "Texts",
    "boosting": "Boosted trees",
    "recovery": "Recovery",
    "records": "Checkpoints and records",
    "sweeps": "Sweeps",
    "many": "Many trials",
    "growth": "How cost grows",
}
HEAD = """# Benchmarks

`make bench` runs these on your machine, `python tests/benchmarks/run.py NAME` one of them. Numbers are medians of
several runs, each of rtrain next to one of its peer on the same machine. The spread of the ratios is in parentheses.
A ratio below 1 means that rtrain is quicker, or takes less. What rtrain trains has to be as good as what the peer does,
or the benchmark fails. The peers are in `tests/benchmarks/peers/`. Seconds depend on the machine; compare the ratios.

Nothing here was measured on a GPU.
"""


def line(one: Row | Growth) -> str:
    """Return a number as it is printed."""
    if isinstance(one, Growth):
        return f"{one.name} by {one.axis:<44} {_curve(one)}   exponent {one.exponent():.2f}"
    name, ours, peer, ratio, goal = _cells(one)
    return f"{name:<70} {ours:>10} {peer:>10}  {ratio:<20} goal {goal}"


def _curve(one: Growth) -> str:
    return ", ".join(f"{size:g}: {_shown(cost)} {one.unit}" for size, cost in zip(one.sizes, one.costs, strict=True))


def keep(docs: Path, suite: str, about: str, found: Iterable[Row | Growth]) -> None:
    """Put what a suite found in the place of what it found before, and write the page.

    Args:
        docs: The folder of the page.
        suite: Its name.
        about: What it measures, in Markdown.
        found: Its numbers.
    """
    file = docs / "benchmarks.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    kept[suite] = {"about": about, "date": date, "machine": machine, "found": [asdict(one) for one in found]}
    file.write_text(json.dumps(kept, indent=1) + "\n")
    write(docs, kept)


def write(docs: Path, kept: Mapping[str, Any]) -> None:
    """Write the page and its figures."""
    (docs / "benchmarks.md").write_text(text(kept))
    for name, figure in figures(kept).items():
        (docs / "figures" / name).write_text(figure)


def text(kept: Mapping[str, Any]) -> str:
    """Return the page."""
    parts = [HEAD]
    for suite in (name for name in TITLES if name in kept):
        of = kept[suite]
        parts.append(f"## {TITLES[suite]}\n\n{of['about']}\n\nMeasured on {of['date']}, {of['machine']}.\n")
        parts.append(_growth(of["found"]) if suite == "growth" else _table(Row(**one) for one in of["found"]))
    return "\n".join(parts)


def _table(rows: Iterable[Row]) -> str:
    lines = ["| | rtrain | peer | ratio | goal |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(row))} |" for row in rows)]) + "\n"


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    """Return the name, both medians, the ratio with its spread, and the goal."""
    reached = " (reaches {:.3f}, its peer {:.3f})".format(*row.reached) if row.reached else ""
    ours, peer = (f"{_shown(statistics.median(side))} {row.unit}" if side else "" for side in (row.ours, row.peer))
    ratios = row.ratios()
    ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    goal = "" if row.goal is None else f"{row.goal:g}, {'met' if row.is_met() else 'missed'}"
    return row.name + reached, ours, peer, ratio, goal


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _growth(found: Sequence[Mapping[str, Any]]) -> str:
    curves = [Growth(**one) for one in found]
    lines = ["| | by | from, to | exponent |", "|---|---|---|---|"]
    for one in curves:
        span = f"{_shown(one.costs[0])} to {_shown(one.costs[-1])} {one.unit}"
        sizes = f"{one.sizes[0]:,} to {one.sizes[-1]:,} {one.axis}"
        lines.append(f"| {one.name} | {sizes} | {span} | {one.exponent():.2f} |")
    images = [f"![Cost by {axis}](figures/{_file(axis)})" for axis in dict.fromkeys(one.axis for one in curves)]
    return "\n".join([*lines, "", *images]) + "\n"


def figures(kept: Mapping[str, Any]) -> dict[str, str]:
    """Return the figures by file name: one for each axis."""
    curves = [Growth(**one) for one in kept.get("growth", {}).get("found", ())]
    axes = dict.fromkeys(one.axis for one in curves)
    return {_file(axis): plot.svg([one for one in curves if one.axis == axis]) for axis in axes}


def _file(axis: str) -> str:
    return f"growth-{axis.replace(' ', '-')}.svg"
