"""What every trainer plugin has to do, as tests to inherit.

class TestMyTrainer(TrainerContract):
    config = "path/to/primary.yaml"
    more = "trainer.max_epochs=4"      # trains longer than ``config`` alone
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import rtrain
from rtrain.datasets.registry import load_source
from rtrain.runs.files import sha256_of
from rtrain.runs.manifest import Manifest, read_manifest
from rtrain.runs.run import Run
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.registry import load_trainer


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

    def test_its_checkpoint_alone_gives_the_metrics_of_the_run(self, tmp_path: Path) -> None:
        run = self.train(tmp_path)
        record = run.manifest.checkpoints[-1]
        found = rtrain.evaluate(run.path / "checkpoints" / record["name"])
        shared = {name: value for name, value in found.items() if f"test/{name}" in record["metrics"]}
        assert shared, f"none of {sorted(found)} is among {sorted(record['metrics'])}"
        for name, value in shared.items():
            assert math.isclose(value, record["metrics"][f"test/{name}"], rel_tol=1e-3), name

    def test_each_row_is_on_one_worker(self, tmp_path: Path) -> None:
        manifest = self.train(tmp_path).manifest
        assert manifest.dataset is not None
        own = [worker["num_rows"]["train"] for worker in manifest.workers.values()]
        assert sum(own) == manifest.dataset["num_rows"]["train"]

    def test_a_stopped_run_resumes_to_the_result_of_an_uninterrupted_one(self, tmp_path: Path) -> None:
        whole = self.train_loop(tmp_path / "whole", RecordingChannel())
        stopped = self.train_loop(tmp_path / "stopped", RecordingChannel(stop_after=2))
        assert stopped.of("checkpoint"), "nothing was saved before the stop"
        resumed = self.train_loop(tmp_path / "stopped", RecordingChannel())
        last = resumed.metrics or stopped.metrics
        steady = [name for name in whole.metrics if name.startswith("test/")]
        assert steady
        for name in steady:
            assert math.isclose(last[name], whole.metrics[name], rel_tol=1e-5), name

    def train_loop(self, folder: Path, channel: RecordingChannel) -> RecordingChannel:
        """Run the plugin's loop alone in the run directory ``folder``, and return the channel."""
        from rtrain.config.session import Session
        from rtrain.schemas import schemas

        with Session(self.config, [*self.overrides, "num_workers=0"], schemas()) as session:
            composed = session.check()
        dataset = load_source(composed.resolved["dataset"]["type"], composed.allow).load(composed.conf.dataset)
        worker = make_worker(folder, composed.conf.trainer, dataset, channel=channel)
        worker.run, worker.allow = composed.conf.run, composed.allow
        load_trainer(self.trainer).train_loop(worker.conf)(worker)
        return channel

    def test_without_its_framework_it_says_what_to_install(self) -> None:
        if not load_trainer(self.trainer).requires:
            return
        code = (
            f"import sys; sys.modules.update(dict.fromkeys({load_trainer(self.trainer).requires!r})); "
            "from rtrain.cli.app import run; "
            f"words = ['fit', {self.config!r}, 'num_workers=0']; "
            "print([run(['trainers']), run([*words, '--cfg', 'job']), run(words)])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[0, 0, 2]", done.stderr
        assert "pip install" in done.stderr

    def test_plugin_imports_no_framework(self) -> None:
        code = (
            "import sys; from rtrain.trainers.registry import confs, load_trainer; confs(); "
            f"load_trainer({self.trainer!r}); print({{'ray', {self.framework!r}}} & set(sys.modules))"
        )
        assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
