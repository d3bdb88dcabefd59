"""Sweeps that take a moment: boosted trees of a few rounds on a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweep_results import only_sweep

from rtrain.cli.app import run as rtrain
from rtrain.sweeps.record.sweep_record import read_sweep

CONFIG = "defaults: [{trainer: xgboost}, {dataset: sklearn}]\ndataset: {name: iris}\nrun: {name: tiny}\n"
"""Of ``tiny.yaml``, which the fixture ``tiny`` writes."""
TINY = (
    *("fit", "tiny.yaml", "--multirun", "num_workers=0", "trainer.num_threads=1", "dataset.limit=60"),
    "sweep.metric=test/mlogloss",
)

LOOP = """
import json
import pathlib
import tempfile

import ray.train


def count(config):
    number, checkpoint = 0, ray.train.get_checkpoint()
    if checkpoint is not None:
        number = json.loads((pathlib.Path(checkpoint.path) / "number").read_text())
    while number < 9:
        number += 1
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "number").write_text(json.dumps(number))
            metrics = {"epoch": number, "value": number * config["rate"]}
            ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder))
"""
GROWING = """
import json
import pathlib
import tempfile

import ray.train


def grow(config):
    made_by, checkpoint = [], ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            made_by = json.loads((pathlib.Path(folder) / "rates.json").read_text())
    while len(made_by) < config["length"]:
        made_by.append(config["rate"])
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "rates.json").write_text(json.dumps(made_by))
            given = ray.train.Checkpoint.from_directory(folder) if len(made_by) % config["every"] == 0 else None
            metrics = {"value": sum(made_by), "rate": config["rate"]}
            ray.train.report(metrics, checkpoint=given, checkpoint_dir_name="state")
"""
"""A loop whose checkpoint holds the rate of each of its steps."""
LOOPS = (
    *("fit", "loops.yaml", "--multirun", "trainer.train_loop_config.rate=4,1,2,3", "sweep.metric=value"),
    *("sweep.mode=max", "sweep/scheduler=hyperband", "sweep.scheduler.max_length=9"),
)
"""A sweep of loops, of which the first is the best, and each other one is stopped after its first report."""
POPULATION = (
    *("fit", "growing.yaml", "--multirun", "trainer.train_loop_config.rate=1,8", "sweep.metric=value"),
    *("sweep.mode=max", "sweep/scheduler=pbt", "sweep.scheduler.interval=3"),
)
"""A population of loops, of which the second is the better one."""


def write_loops(folder: Path) -> None:
    """Write the project of ``LOOPS`` and ``POPULATION``."""
    (folder / "pyproject.toml").write_text("")
    (folder / "growing_loop.py").write_text(GROWING)
    (folder / "growing.yaml").write_text(
        "trainer: {type: torch, train_loop: 'growing_loop:grow', train_loop_config: {rate: 1, length: 8, every: 1}}\n"
    )
    (folder / "counting_loop.py").write_text(LOOP)
    (folder / "loops.yaml").write_text(
        "trainer: {type: torch, train_loop: 'counting_loop:count', train_loop_config: {rate: 1}}\n"
    )


def swept(words: Sequence[str], code: int = 0) -> tuple[dict[str, Any], Path]:
    """Run a command that sweeps; return what the only sweep there is says of itself, and its folder."""
    assert rtrain(list(words)) == code
    folder = only_sweep(Path("runs"))
    return read_sweep(folder), folder
