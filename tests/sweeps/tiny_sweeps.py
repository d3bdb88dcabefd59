"""Sweeps that take a moment: boosted trees of a few rounds on a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweep_results import only_sweep

from rtrain.cli.app import run as rtrain
from rtrain.sweeps.record import read_sweep

CONFIG = "defaults: [{trainer: xgboost}, {dataset: sklearn}]\ndataset: {name: iris}\nrun: {name: tiny}\n"
"""Of ``tiny.yaml``, which the fixture ``tiny`` writes."""
TINY = (
    *("fit", "tiny.yaml", "--multirun", "num_workers=0", "trainer.num_threads=1", "dataset.limit=60"),
    "sweep.metric=test/mlogloss",
)


def swept(words: Sequence[str], code: int = 0) -> tuple[dict[str, Any], Path]:
    """Run a command that sweeps; return what the only sweep there is says of itself, and its folder."""
    assert rtrain(list(words)) == code
    folder = only_sweep(Path("runs"))
    return read_sweep(folder), folder
