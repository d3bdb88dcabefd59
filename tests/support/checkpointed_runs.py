"""A run directory with checkpoints that are whole, and nothing else."""

from __future__ import annotations

from pathlib import Path

from rtrain.runs.checkpoints import checkpoint_dir, write_checkpoint
from rtrain.testing.workers import make_manifest


def write_checkpointed_run(folder: Path) -> None:
    """Write a manifest, and the two checkpoints that it lists."""
    records = []
    for step in (1, 2):
        target = checkpoint_dir(folder, step=step, epoch=0)
        records.append(write_checkpoint(target, _write, {"step": step, "epoch": 0, "metrics": {}, "score": None}))
    make_manifest(checkpoints=records).write(folder)


def _write(folder: Path) -> None:
    (folder / "model").write_bytes(b"weights")
