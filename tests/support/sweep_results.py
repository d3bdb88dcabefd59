"""What sweeps and their trials have left behind."""

from __future__ import annotations

from pathlib import Path

from rtrain.runs.run import Run


def only_sweep(root: Path) -> Path:
    """Return the folder of the only sweep below a run root."""
    (found,) = root.glob("*/sweep.json")
    return found.parent


def num_events(folder: Path) -> int:
    """Return how much all trials of a sweep together have reported; 0 before there are any."""
    return sum(len(path.read_text().splitlines()) for path in folder.glob("*/events.jsonl"))


def steady(run: Run) -> list[dict[str, float | None]]:
    """Return what a run reported, without its speed."""
    return [{name: value for name, value in one.metrics.items() if "per_second" not in name} for one in run.events()]
