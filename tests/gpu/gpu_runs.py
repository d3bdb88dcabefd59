"""Runs on the GPU and on the CPU, and what each trainer has to do there, as tests to inherit."""

from __future__ import annotations

import json
import os
import warnings
from contextlib import chdir
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import rtrain
from rtrain.runs.run import Run

DEVICE = os.environ.get("RTRAIN_TEST_GPU_DEVICE", "cuda")
"""Where the runs under test train; ``cpu`` only tries out the tests."""
PROBE = "trainer.callbacks=[{_target_: probes.Probe}]"
"""Records where training computes."""
IN_PROCESS_AND_ON_A_WORKER = pytest.mark.parametrize("num_workers", [0, 1], ids=["in_process", "on_a_worker"])


def words(num_workers: int, device: str = DEVICE) -> list[str]:
    """Return the overrides that say where a run trains."""
    return [f"num_workers={num_workers}", f"use_gpu={str(device == 'cuda').lower()}"]


def fit(project: Path, config: str, *overrides: str, num_workers: int = 0, device: str = DEVICE) -> Run:
    """Train a built-in config, or one of the project."""
    with chdir(project):
        return rtrain.fit(config, [*words(num_workers, device), *overrides])


def fit_loop(project: Path, config: str, num_workers: int) -> Run:
    """Train by a loop of the project; in this process it takes the GPU that it finds, without being told."""
    with chdir(project):
        return rtrain.fit(config, words(num_workers)[: 1 + num_workers])


def devices(run: Run) -> list[dict[str, str]]:
    """Return what the probes wrote: one entry for each time that the run trained."""
    return [json.loads(line) for line in (run.path / "devices.jsonl").read_text().splitlines()]


def resume(run: Run, *overrides: str) -> Run:
    """Resume a run with changes, of which it is not warned here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "resuming with", UserWarning)
        return rtrain.resume(run.path, overrides)


def accuracy(run: Run) -> float:
    """Return the accuracy of a run on its val split."""
    return float(run.metrics["val/accuracy"])


def digits(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the digits as models take them, and their labels: x (n, 1, 8, 8), y (n,)."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x = (data.images[:300, None] / 16).astype("float32")
    return x.reshape(len(x), *run.manifest.dataset["input_shape"]), data.target[:300]


class TrainsOnGpu:
    """Trains a built-in config on the digits, resumes it for longer, and compares it with a run on the CPU."""

    config: ClassVar[str]
    overrides: ClassVar[tuple[str, ...]] = (PROBE,)
    short: ClassVar[str] = "trainer.max_epochs=2"
    long: ClassVar[str] = "trainer.max_epochs=4"
    accuracy_within: ClassVar[float] = 0.03
    """Largest difference of an accuracy: kernels of GPUs add up in another order, convolutions with fewer bits."""

    @pytest.fixture(scope="class", params=[0, 1], ids=["in_process", "on_a_worker"])
    @classmethod
    def run(cls, request: pytest.FixtureRequest, project: Path) -> Run:
        """A run on the GPU that was finished, and resumed for longer."""
        begun = fit(project, cls.config, cls.short, *cls.overrides, num_workers=request.param)
        return resume(begun, cls.long)

    @pytest.fixture(scope="class")
    @classmethod
    def on_cpu(cls, project: Path) -> Run:
        """The same on the CPU, without a break."""
        return fit(project, cls.config, cls.long, *cls.overrides, device="cpu")

    def test_it_computes_on_the_gpu_also_when_it_is_resumed(self, run):
        assert run.status == "succeeded"
        assert [entry["model"] for entry in devices(run)] == [DEVICE, DEVICE]

    def test_its_manifest_names_the_gpu(self, run):
        assert run.manifest.workers["0"]["device"].startswith(DEVICE)

    def test_it_learns_what_it_learns_on_a_cpu(self, run, on_cpu):
        assert accuracy(run) == pytest.approx(accuracy(on_cpu), abs=self.accuracy_within)
        assert accuracy(run) > 0.8

    def test_an_evaluation_on_the_gpu_is_that_of_a_cpu(self, run):
        there, here = (rtrain.evaluate(run.path, [word]) for word in (words(0)[1], "use_gpu=false"))
        assert there["num_rows"] == here["num_rows"]
        assert there["accuracy"] == pytest.approx(here["accuracy"], abs=self.accuracy_within)

    def test_a_predictor_on_the_gpu_predicts_what_one_on_a_cpu_does(self, run):
        x, y = digits(run)
        there, here = (rtrain.load_checkpoint(run.path, [word]) for word in (words(0)[1], "use_gpu=false"))
        np.testing.assert_allclose(there.predict(x), here.predict(x), atol=0.01)
        assert (there.predict(x).argmax(1) == y).mean() > 0.8

    def test_predictions_are_written(self, run, tmp_path):
        assert rtrain.predict(run.path, tmp_path / "out.parquet", [words(0)[1]], split="test") == 359
