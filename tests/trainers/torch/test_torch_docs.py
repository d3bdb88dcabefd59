"""docs/trainers/torch.md: its tables name all options."""

from __future__ import annotations

import re
from pathlib import Path

import rtrain

ROOT = Path(rtrain.__file__).parent.parent
PAGE = (ROOT / "docs" / "trainers" / "torch.md").read_text()


def test_the_table_of_parts_has_each_option():
    rows = dict(re.findall(r"^\| `trainer\.(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    for group in ("model", "optimizer", "scheduler", "loss"):
        options = {path.stem for path in (ROOT / "configs" / "trainer" / group).glob("*.yaml")}
        assert options <= set(re.findall(r"`(?:\w+=)?(\w+)`", rows[group])), group


def test_the_files_of_a_checkpoint_are_those_that_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = rtrain.fit("mlp", ["num_workers=0", "epochs=1", "trainer.ema_decay=0.9"])
    named = set(re.findall(r"`(\w+\.(?:safetensors|pt))`", PAGE))
    assert named == {path.name for path in run.best_checkpoint.glob("*") if path.suffix in (".safetensors", ".pt")}
