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
LOOPS = (
    *("fit", "loops.yaml", "--multirun", "trainer.train_loop_config.rate=4,1,2,3", "sweep.metric=value"),
    *("sweep.mode=max", "sweep/scheduler=hyperband", "sweep.scheduler.max_length=9"),
)
"""A sweep of loops, of which the first is the best, and each other one is stopped after its first report."""


def write_loops(folder: Path) -> None:
    """Write the project of ``LOOPS``."""
    (folder / "pyproject.toml").write_text("")
    (folder / "counting_loop.py").write_text(LOOP)
    (folder / "loops.yaml").write_text(
        "trainer: {type: torch, train_loop: 'counting_loop:count', train_loop_config: {rate: 1}}\n"
    )


def swept(words: Sequence[str], code: int = 0) -> tuple[dict[str, Any], Path]:
    """Run a command that sweeps; return what the only sweep there is says of itself, and its folder."""
    assert rtrain(list(words)) == code
    folder = only_sweep(Path("runs"))
    return read_sweep(folder), folder
