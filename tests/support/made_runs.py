"""Run directories and sweeps without a training: the files that a run leaves behind, written in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rtrain.runs.events import Event, EventLog
from rtrain.testing.workers import make_manifest

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def trainer_conf(kind: str = "torch", **more: Any) -> dict[str, Any]:
    """Return a config section as small as it gets."""
    return {"type": kind, **more}


def make_run(
    root: Path,
    name: str = "mlp",
    short_id: str = "0a1b",
    *,
    config: dict[str, Any] | None = None,
    losses: tuple[float, ...] = (0.9, 0.5, 0.4),
    minutes: int = 0,
    **facts: Any,
) -> Path:
    """Write the run ``<root>/<name>/<time>-<short_id>`` and return its folder.

    Args:
        root: The ``run.root_dir``.
        name: ``run.name``.
        short_id: Four hexadecimal digits.
        config: Of the manifest.
        losses: ``val/loss`` of each epoch, ten steps long.
        minutes: When it started, after noon.
        facts: Fields of the manifest.
    """
    started = NOON + timedelta(minutes=minutes)
    folder = root / name / f"{started:%Y-%m-%d_%H-%M-%S}-{short_id}"
    return write_run(folder, name, config=config, losses=losses, started=started, **facts)


def write_run(
    folder: Path,
    name: str,
    *,
    config: dict[str, Any] | None,
    losses: tuple[float, ...],
    started: datetime,
    **facts: Any,
) -> Path:
    """Write a run directory."""
    folder.mkdir(parents=True)
    best = min(losses, default=None)
    known: dict[str, Any] = {
        "run_id": folder.name,
        "run_name": name,
        "status": "succeeded",
        "exit_reason": "trained to the end",
        "config": {"trainer": trainer_conf(), "run": {"name": name}, **(config or {})},
        "started_at": started.isoformat(),
        "ended_at": (started + timedelta(seconds=90)).isoformat(),
        "timings_seconds": {"prepare": 30.0, "train": 60.0, "total": 90.0},
        "step": 10 * len(losses),
        "epoch": len(losses),
        "metrics": {"val/loss": losses[-1]} if losses else {},
        "best": None if best is None else {"monitor": "val/loss", "mode": "min", "value": best, "step": 10, "epoch": 1},
    }
    make_manifest(**{**known, **facts}).write(folder)
    events = [
        Event(step=10 * number, epoch=number, time=(started + timedelta(minutes=number)).isoformat(), metrics=one)
        for number, one in enumerate(({"val/loss": loss} for loss in losses), 1)
    ]
    write_events(folder / "events.jsonl", events)
    return folder


def write_events(path: Path, events: Iterable[Event]) -> None:
    """Add events to a file."""
    log = EventLog(path)
    for event in events:
        log.append(event)
    log.close()


def add_checkpoint(folder: Path, step: int = 10, size: int = 1000) -> Path:
    """Write a checkpoint of a run and list it in its manifest."""
    from rtrain.runs.checkpoints import checkpoint_dir, write_checkpoint
    from rtrain.runs.manifest import read_manifest
    from rtrain.runs.recorder import list_checkpoints

    target = checkpoint_dir(folder, step=step, epoch=step // 10)
    score = {"monitor": "val/loss", "mode": "min", "value": 1.0 / step}
    target.parent.mkdir(exist_ok=True)
    facts = {"step": step, "epoch": step // 10, "metrics": {}, "score": score}
    record = write_checkpoint(target, lambda place: _fill(place, size), facts)
    manifest = read_manifest(folder)
    list_checkpoints(manifest, [*manifest.checkpoints, record])
    manifest.write(folder)
    return target


def _fill(folder: Path, size: int) -> None:
    (folder / "model.bin").write_bytes(bytes(size))


def make_sweep(root: Path, name: str = "mlp", mark: str = "330826", rates: tuple[float, ...] = (0.1, 0.01)) -> Path:
    """Write the sweep ``<root>/<name>-sweep-<mark>`` with a trial for each rate, and return its folder."""
    folder = root / f"{name}-sweep-{mark}"
    trials = []
    for number, rate in enumerate(rates):
        trial = folder / f"{number:03}-4d4a7ab{number}"
        config = {"trainer": trainer_conf(optimizer={"lr": rate})}
        started = NOON + timedelta(minutes=number)
        write_run(trial, name, config=config, losses=(rate, rate / 2), started=started, overrides=[f"lr={rate}"])
        entry = {"number": number, "name": trial.name, "status": "succeeded", "values": [rate / 2], "seconds": 90.0}
        what = {"point": [str(rate)], "overrides": [f"trainer.optimizer.lr={rate}"], "config_hash": str(number)}
        trials.append({**entry, **what})
    record = {
        "schema_version": 1,
        "status": "succeeded",
        "started_at": NOON.isoformat(),
        "resumes": [],
        "search": "grid",
        "axes": [{"key": "trainer.optimizer.lr"}],
        "goals": [{"metric": "val/loss", "mode": "min"}],
        "best": min(range(len(rates)), key=lambda one: rates[one]),
        "trials": trials,
    }
    (folder / "sweep.json").write_text(json.dumps(record))
    return folder
