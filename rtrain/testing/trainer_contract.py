"""What every trainer plugin has to do, as tests to inherit.

class TestMyTrainer(TrainerContract):
    config = "path/to/primary.yaml"
    trainer = "my_trainer"
    framework = "my_framework"

The config is trained once in this process and twice on two Ray workers (``-k "not two_workers"`` leaves that out); most
tests look at what these runs left behind. Tests of a plugin's own can take the same runs, ``run`` and ``two``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import rtrain
from rtrain.config.session import Session
from rtrain.datasets.base import Dataset
from rtrain.datasets.registry import load_source
from rtrain.errors import CheckpointError, ConfigError, RtrainError
from rtrain.runs.facts import num_cores
from rtrain.runs.filesystem.files import sha256_of
from rtrain.runs.run import Run
from rtrain.runs.status import Status
from rtrain.schemas import schemas
from rtrain.testing.damage import change_byte, replace_file
from rtrain.testing.random_numbers import random_numbers_stay
from rtrain.testing.small_data import few_rows, in_float64, moved, with_another_last_target, with_column
from rtrain.testing.workers import RecordingChannel, make_job, make_worker, newest
from rtrain.trainers.base import Job
from rtrain.trainers.registry import load_trainer

CSV = "petal_length,petal_width,kind\n1.4,0.2,a\n4.7,1.4,b\n6.0,2.5,c\n"
MOST_LINES = 6
"""What an error that a damaged file leads to may take: the traces of C++ are left out."""


class TrainerContract:
    """Trains the plugin's own config on the data that it names: a classification, a regression or a ranking."""

    config: ClassVar[str]
    """A primary config, or the name of a built-in one; it chooses its dataset in ``defaults``."""
    overrides: ClassVar[tuple[str, ...]] = ()
    """What makes it a matter of seconds. At least three steps are left, if training has steps."""
    trainer: ClassVar[str]
    """Name of the plugin."""
    framework: ClassVar[str]
    """Module that must not be imported before training."""

    at_once: ClassVar[bool] = False
    """Training is a single step (a forest is fitted by one call): it can't stop or resume in the middle."""
    distributed: ClassVar[bool] = True
    """Two workers can train together."""
    same_on_two: ClassVar[tuple[str, ...]] = ()
    """More overrides, with which two workers compute what one process does: no dropout, say."""
    tolerance: ClassVar[float] = 1e-3
    """How far, relatively, a metric of two workers may be from that of one process."""
    takes_float64: ClassVar[bool] = True
    """Rows of float64 count with all their digits, or are standardized before they become float32."""
    exact: ClassVar[bool] = True
    """A resumed run ends with the very model of an uninterrupted one: it predicts the same to the last bit. False: its
    metrics agree to five digits."""

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, tmp_path_factory: pytest.TempPathFactory) -> Run:
        """Train in this process."""
        return cls.train(tmp_path_factory.mktemp(cls.trainer))

    @pytest.fixture(scope="class")
    @classmethod
    def pair(cls, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
        """Train the same twice on two workers, as trials of a sweep; once where the workers can't."""
        if not cls.distributed:
            pytest.skip(f"{cls.trainer} trains on one worker")
        root = tmp_path_factory.mktemp(cls.trainer)
        if not load_trainer(cls.trainer).can_rejoin:
            return [cls.train(root, "num_workers=2", *cls.same_on_two)]
        words = ["num_workers=2", "run.checkpoint.keep=2,3", f"run.root_dir={root}", *cls.same_on_two]
        folder = rtrain.sweep(cls.config, [*cls.overrides, *words])
        return [Run.load(path.parent) for path in sorted(folder.glob("0*/manifest.json"))]

    @pytest.fixture(scope="class")
    @classmethod
    def two(cls, pair: list[Run]) -> Run:
        """Return a run on two workers."""
        return pair[0]

    @classmethod
    def train(cls, folder: Path, *overrides: str) -> Run:
        """Train with all runs below ``folder``; in this process, unless the overrides say otherwise."""
        return rtrain.fit(cls.config, [*cls.overrides, "num_workers=0", f"run.root_dir={folder}", *overrides])

    def test_it_trains_reports_and_checkpoints(self, run: Run) -> None:
        assert run.status == Status.SUCCEEDED
        assert _measured(run.metrics), f"no metric of test or val among {sorted(run.metrics)}"
        steps = [event.step for event in run.events()]
        assert steps == sorted(steps)
        assert run.best_checkpoint is not None
        assert run.best_checkpoint.is_dir()

    def test_it_knows_the_metrics_that_it_reports(self, run: Run) -> None:
        job = make_job(self.compose().conf, self.load_dataset(), self.trainer)
        known = load_trainer(self.trainer).reports(job)
        if known is None:
            pytest.skip(f"only a run of {self.trainer} knows its metrics")
        assert run.metrics.keys() <= set(known)
        assert known[0] in run.metrics

    def test_the_manifest_is_complete_and_true(self, run: Run) -> None:
        manifest = run.manifest
        assert manifest.ended_at is not None
        assert manifest.dataset is not None
        assert manifest.versions["rtrain"] == rtrain.__version__
        for record in manifest.checkpoints:
            folder = run.path / "checkpoints" / record["name"]
            for name, file in record["files"].items():
                assert (folder / name).stat().st_size == file["size_bytes"]
                assert sha256_of(folder / name) == file["sha256"]

    def test_the_config_of_a_run_repeats_it_to_the_last_digit(self, run: Run, tmp_path: Path) -> None:
        with random_numbers_stay():
            again = rtrain.fit(str(run.path / "config.yaml"), [f"run.root_dir={tmp_path}"])
        assert again.manifest.config["trainer"] == run.manifest.config["trainer"]
        assert _steady(again.metrics) == _steady(run.metrics)

    def test_its_checkpoint_alone_gives_the_metrics_of_the_run(self, run: Run, tmp_path: Path) -> None:
        record = run.manifest.checkpoints[-1]
        alone = shutil.copytree(run.path / "checkpoints" / record["name"], tmp_path / "alone")
        found = rtrain.evaluate(alone, split=_evaluated_split(record["metrics"]))
        reported = _measured(record["metrics"])
        shared = found.keys() & reported.keys()
        assert shared, f"none of {sorted(found)} is among {sorted(reported)}"
        for name in shared:
            assert found[name] == pytest.approx(reported[name], rel=1e-3), name

    def test_a_checkpoint_that_lacks_a_file_is_told(self, run: Run, tmp_path: Path) -> None:
        record, told = run.manifest.checkpoints[-1], set()
        for name in record["files"].keys() - {"about.json"}:
            part = shutil.copytree(run.path / "checkpoints" / record["name"], tmp_path / name.replace("/", "-"))
            (part / name).unlink()
            try:
                rtrain.evaluate(part)
            except CheckpointError:  # and no other error
                told.add(name)
        assert told, f"the model can do without each of {sorted(record['files'])}"

    def test_a_file_with_another_byte_is_named_before_the_model_is_made(self, run: Run, tmp_path: Path) -> None:
        record = run.manifest.checkpoints[-1]
        for name in record["files"]:
            part = shutil.copytree(run.path / "checkpoints" / record["name"], tmp_path / name.replace("/", "-"))
            change_byte(part / name)
            with pytest.raises(CheckpointError, match=re.escape(name)):
                rtrain.evaluate(part)

    def test_a_file_that_is_quite_another_is_told(self, run: Run, tmp_path: Path) -> None:
        record = run.manifest.checkpoints[-1]
        told: dict[str, str] = {}
        for name in record["files"].keys() - {"about.json"}:
            part = shutil.copytree(run.path / "checkpoints" / record["name"], tmp_path / name.replace("/", "-"))
            replace_file(part, name, b"quite another file")
            try:
                rtrain.evaluate(part)
            except RtrainError as error:  # and no other error
                told[name] = str(error)
        assert [text for text in told.values() if text.count("\n") >= MOST_LINES] == []
        assert told, f"the model can do with anything for each of {sorted(record['files'])}"

    def test_each_row_is_seen_once(self, run: Run) -> None:
        _assert_rows_are_shared(run)

    def test_the_last_row_counts_even_if_rows_are_fewer_than_a_step_takes(self, tmp_path: Path) -> None:
        dataset, found = few_rows(self.load_dataset()), []
        for name, one in (("a", dataset), ("b", with_another_last_target(dataset))):
            channel, folder = RecordingChannel(), tmp_path / name
            worker = self.train_loop(folder, channel, one)
            predictor = load_trainer(self.trainer).load_predictor(newest(folder, worker.conf, one), "cpu")
            found.append(predictor.predict(next(one.splits["train"].own_rows(0, 1))["x"]))
        assert not np.array_equal(found[0], found[1]), "the model is the same whatever the target of the last row"

    def test_numbers_far_from_zero_are_told_apart(self, tmp_path: Path) -> None:
        near = in_float64(few_rows(self.load_dataset()))
        if near is None:
            pytest.skip(f"the rows of {self.config} are not numbers")
        found = []
        for name, dataset in (("near", near), ("far", moved(near, 2.0**30))):
            refusal = _refusal(self.trainer, make_job(self.compose().conf, dataset, self.trainer))
            assert not refusal
            worker = self.train_loop(tmp_path / name, RecordingChannel(), dataset)
            predictor = load_trainer(self.trainer).load_predictor(newest(tmp_path / name, worker.conf, dataset), "cpu")
            found.append(predictor.predict(next(dataset.splits["train"].own_rows(0, 1))["x"]))
        if self.takes_float64:
            np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("role", ["weight", "group", "base_margin"])
    def test_each_column_of_the_rows_is_used_or_refused(self, role: str, tmp_path: Path) -> None:
        dataset = few_rows(self.load_dataset())
        if role in dataset.info.columns:
            pytest.skip(f"the rows of {self.config} have a {role} already")
        num_classes = dataset.info.num_classes or 2
        places = (num_classes,) if num_classes > 2 and role == "base_margin" else ()
        kind = "int64" if role == "group" else "float32"
        found = []
        for name in ("a", "b"):
            one = with_column(dataset, role, partial(_make_column, ord(name), places, kind))
            refusal = _refusal(self.trainer, make_job(self.compose().conf, one, self.trainer))
            if refusal:
                assert role in refusal
                return
            worker = self.train_loop(tmp_path / name, RecordingChannel(), one)
            predictor = load_trainer(self.trainer).load_predictor(newest(tmp_path / name, worker.conf, one), "cpu")
            found.append(predictor.predict(next(one.splits["train"].own_rows(0, 1))["x"]))
        assert not np.array_equal(found[0], found[1]), f"the model is the same whatever the {role} of the rows"

    def test_two_workers_share_the_rows_and_learn_what_one_process_learns(
        self, run: Run, two: Run, tmp_path: Path
    ) -> None:
        _assert_rows_are_shared(two)
        assert [worker["num_rows"]["train"] > 0 for worker in two.manifest.workers.values()] == [True, True]
        one = self.train(tmp_path, *self.same_on_two) if self.same_on_two else run
        assert _last_step(two) == _last_step(one)
        assert _measured(two.metrics) == pytest.approx(_measured(one.metrics), rel=self.tolerance)

    def test_two_workers_train_the_same_a_second_time(self, pair: list[Run]) -> None:
        if not load_trainer(self.trainer).can_rejoin:
            pytest.skip(f"{self.trainer} trains one run in the processes of several workers")
        assert [one.status for one in pair] == [Status.SUCCEEDED] * 2
        pids = [{worker["pid"] for worker in one.manifest.workers.values()} for one in pair]
        assert pids[0] == pids[1], "they were not the same processes"
        assert [len(one.manifest.attempts) for one in pair] == [1, 1], "it failed on the way"
        first, second = (_measured(one.metrics) for one in pair)
        assert second == pytest.approx(first, rel=0 if self.exact else 1e-5, abs=0)

    def test_a_request_to_stop_ends_training_early_with_a_checkpoint(self, run: Run, tmp_path: Path) -> None:
        self.skip_at_once()
        channel = RecordingChannel(stop_after=2)
        self.train_loop(tmp_path, channel)
        assert channel.checkpoints, "nothing was saved before the end"
        assert channel.checkpoints[-1]["step"] < _last_step(run), "training continued to its end"

    def test_a_stopped_run_resumes_to_the_result_of_an_uninterrupted_one(self, run: Run, tmp_path: Path) -> None:
        self.skip_at_once()
        stopped, resumed = RecordingChannel(stop_after=2), RecordingChannel()
        self.train_loop(tmp_path, stopped)
        self.train_loop(tmp_path, resumed)
        assert resumed.events, "nothing was trained after the stop"
        began, saved = resumed.events[0].step, stopped.checkpoints[-1]["step"]
        assert began > saved, "training started from scratch instead of at the checkpoint"
        assert resumed.events[-1].step == _last_step(run)
        assert _measured(resumed.metrics) == pytest.approx(_measured(run.metrics), rel=0 if self.exact else 1e-5, abs=0)
        if self.exact:
            expected, found = self.predictions(run.path), self.predictions(tmp_path)
            assert np.array_equal(expected, found), "the model is another one"

    def test_a_finished_run_is_not_trained_again(self, run: Run, tmp_path: Path) -> None:
        shutil.copytree(run.path / "checkpoints", tmp_path / "checkpoints")
        channel = RecordingChannel()
        self.train_loop(tmp_path, channel)
        assert [record.step for record in channel.events if record.step <= _last_step(run)] == []

    def test_a_column_that_is_not_there_is_named_with_the_nearest_one(self, tmp_path: Path) -> None:
        (tmp_path / "iris.csv").write_text(CSV)
        data = ["dataset=csv", f"dataset.path={tmp_path}/iris.csv", "dataset.label=kind"]
        with pytest.raises(ConfigError) as raised:
            self.train(tmp_path / "runs", *data, "dataset.features=[petal_width,petal_lenght]")
        assert "petal_lenght" in str(raised.value)
        assert "petal_length" in str(raised.value)
        assert not (tmp_path / "runs").exists(), "the run began in spite of it"

    def test_without_its_framework_it_says_what_to_install(self) -> None:
        requires = load_trainer(self.trainer).requires
        if not requires:
            pytest.skip(f"{self.trainer} requires nothing")
        code = (
            f"import sys; sys.modules.update(dict.fromkeys({requires!r})); "
            "from rtrain.cli.app import run; "
            f"words = ['fit', {self.config!r}, 'num_workers=0']; "
            "print([run(['trainers']), run([*words, '--cfg', 'job']), run(words)])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[0, 0, 2]", done.stderr
        assert "pip install" in done.stderr

    def test_the_plugin_imports_no_framework(self) -> None:
        code = (
            "import sys; from rtrain.trainers.registry import confs, load_trainer; confs(); "
            f"plugin = load_trainer({self.trainer!r}); "
            f"print({{'ray', {self.framework!r}, *plugin.requires}} & set(sys.modules))"
        )
        assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"

    def test_what_workers_import_early_is_there_and_leaves_devices_alone(self) -> None:
        plugin = load_trainer(self.trainer)
        if not plugin.worker_modules:
            pytest.skip(f"workers of {self.trainer} import nothing early")
        code = (
            f"import importlib, sys; [importlib.import_module(name) for name in {plugin.worker_modules!r}]; "
            "torch = sys.modules.get('torch'); print(torch is not None and torch.cuda.is_initialized())"
        )
        assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "False"

    def skip_at_once(self) -> None:
        """Skip a test of what happens between steps."""
        if self.at_once:
            pytest.skip(f"{self.trainer} trains in a single step")

    def load_dataset(self) -> Dataset:
        """Return the dataset that the config names."""
        composed = self.compose()
        return load_source(composed.resolved["dataset"]["type"], composed.builder).load(composed.conf.dataset)

    def compose(self) -> Any:
        """Return the config, composed and checked."""
        with Session(self.config, [*self.overrides, "num_workers=0"], schemas()) as session:
            return session.check()

    def predictions(self, folder: Path) -> np.ndarray:
        """Return what the newest checkpoint of a run predicts for the rows that it was trained on."""
        composed, dataset = self.compose(), self.load_dataset()
        predictor = load_trainer(self.trainer).load_predictor(newest(folder, composed.conf.trainer, dataset), "cpu")
        found: np.ndarray = predictor.predict(next(dataset.splits["train"].own_rows(0, 1))["x"])
        return found

    def train_loop(self, folder: Path, channel: RecordingChannel, dataset: Dataset | None = None) -> Any:
        """Run the plugin's loop alone in the run directory ``folder``, and return the worker."""
        composed = self.compose()
        worker = make_worker(folder, composed.conf.trainer, dataset or self.load_dataset(), channel=channel)
        worker.run, worker.builder, worker.num_threads = composed.conf.run, composed.builder, num_cores()
        with worker.checkpoints.finishing():
            load_trainer(self.trainer).train_loop(worker.conf)(worker)
        return worker


def _refusal(trainer: str, job: Job) -> str:
    """Return why the plugin refuses a job; an empty string if it doesn't."""
    try:
        load_trainer(trainer).check(job)
    except ConfigError as error:
        return str(error)
    return ""


def _make_column(seed: int, places: tuple[int, ...], kind: str, rows: int) -> np.ndarray:
    """Return numbers that ascend, so that equal ones are neighbours: a few queries, or very different weights."""
    numbers = np.random.default_rng(seed).integers(0, 8, (rows, *places))
    return (np.sort(numbers, axis=0) ** 2.0).astype(kind)


def _assert_rows_are_shared(run: Run) -> None:
    """Check the workers' own counts against the dataset's: a row seen twice or never would be missed in between."""
    assert run.manifest.dataset is not None
    counts = [worker["num_rows"] for worker in run.manifest.workers.values()]
    for split in {"train", *(split for one in counts for split in one)}:
        assert sum(one[split] for one in counts) == run.manifest.dataset["num_rows"][split], split


def _last_step(run: Run) -> int:
    return max(event.step for event in run.events())


def _steady(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the metrics that depend on no clock."""
    return {name: value for name, value in metrics.items() if "per_second" not in name}


def _measured(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the metrics of the evaluated split, without its name."""
    split = f"{_evaluated_split(metrics)}/"
    return {name.removeprefix(split): value for name, value in metrics.items() if name.startswith(split)}


def _evaluated_split(metrics: Mapping[str, float | None]) -> str:
    return next((one for one in ("test", "val") if any(name.startswith(f"{one}/") for name in metrics)), "test")
