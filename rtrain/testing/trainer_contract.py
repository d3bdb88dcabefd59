"""What every trainer plugin has to do, as tests to inherit.

class TestMyTrainer(TrainerContract):
    config = "path/to/primary.yaml"
    more = "trainer.max_epochs=4"      # trains longer than ``config`` alone
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import rtrain
from rtrain.runs.files import sha256_of
from rtrain.runs.manifest import Manifest, read_manifest
from rtrain.runs.run import Run


class TrainerContract:
    """Trains the plugin's own config in this process, on the data that it names."""

    config: ClassVar[str]
    """A primary config, or the name of a built-in one."""
    overrides: ClassVar[tuple[str, ...]] = ()
    """What makes it a matter of seconds."""
    trainer: ClassVar[str]
    """Name of the plugin."""
    framework: ClassVar[str]
    """Module that must not be imported before training."""

    def train(self, folder: Path, *overrides: str) -> Run:
        """Train in this process, with all runs below ``folder``."""
        return rtrain.fit(self.config, [*self.overrides, "num_workers=0", f"run.root_dir={folder}", *overrides])

    def test_trains_reports_and_checkpoints(self, tmp_path: Path) -> None:
        run = self.train(tmp_path)
        assert run.status == "succeeded"
        assert run.metrics, "no metrics were reported"
        assert [event.step for event in run.events()] == sorted(event.step for event in run.events())
        assert run.best_checkpoint is not None
        assert run.best_checkpoint.is_dir()

    def test_manifest_is_complete_and_true(self, tmp_path: Path) -> None:
        run = self.train(tmp_path)
        manifest = read_manifest(run.path)
        assert isinstance(manifest, Manifest)
        assert manifest.ended_at is not None
        assert manifest.dataset is not None
        assert manifest.versions["rtrain"] == rtrain.__version__
        for record in manifest.checkpoints:
            folder = run.path / "checkpoints" / record["name"]
            for name, file in record["files"].items():
                assert (folder / name).stat().st_size == file["size_bytes"]
                assert sha256_of(folder / name) == file["sha256"]
        json.loads((run.path / "manifest.json").read_text())

    def test_same_seed_gives_the_same_metrics(self, tmp_path: Path) -> None:
        first, second = (self.train(tmp_path / name) for name in "ab")
        steady = [name for name in first.metrics if "per_second" not in name]
        assert {name: first.metrics[name] for name in steady} == {name: second.metrics[name] for name in steady}

    def test_config_of_a_run_repeats_it(self, tmp_path: Path) -> None:
        first = self.train(tmp_path / "a")
        second = rtrain.fit(str(first.path / "config.yaml"), [f"run.root_dir={tmp_path / 'b'}"])
        assert second.manifest.config["trainer"] == first.manifest.config["trainer"]
        steady = [name for name in first.metrics if "per_second" not in name]
        assert {name: first.metrics[name] for name in steady} == {name: second.metrics[name] for name in steady}

    def test_plugin_imports_no_framework(self) -> None:
        code = (
            "import sys; from rtrain.trainers.registry import confs, load_trainer; confs(); "
            f"load_trainer({self.trainer!r}); print({{'ray', {self.framework!r}}} & set(sys.modules))"
        )
        assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
