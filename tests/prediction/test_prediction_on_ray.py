"""Predictions by actors of Ray Data: those of one process, in the same order, and the same failures."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError, NotEnoughResourcesError, PredictionError

NUM_ROWS = 20_000

BROKEN = """
import os

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        if not self.training and (x[:, 0] > 50).any():
            raise ArithmeticError("a row is too large")
        if not self.training and (x[:, 0] < -50).any():
            os._exit(1)
        return self.layer(x)
"""

MODEL_CONFIG = """
defaults: [{optimizer: sgd}]
trainer: {type: torch, model: {_target_: my_broken_models.Model}}
"""


def table(seed, num_rows=NUM_ROWS):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_rows, 2))
    kind = np.where(x.sum(axis=1) > 0, "red", "blue")
    return pa.table({"id": np.arange(num_rows), "a": x[:, 0], "b": x[:, 1], "kind": kind})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows to train on and to predict."""
    folder = tmp_path_factory.mktemp("on_ray")
    parquet.write_table(table(0, 300), folder / "train.parquet")
    for part in range(2):
        parquet.write_table(table(1 + part), folder / f"new-{part}.parquet", row_group_size=3_000)
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    words = ["dataset=parquet", f"dataset.path={folder}/train.parquet", "dataset.label=kind", "dataset.drop=[id]"]
    return rtrain.fit("xgboost", [*words, "num_workers=0", f"run.root_dir={folder}/runs"]).path


@pytest.fixture
def cluster():
    """A cluster of somebody else."""
    import ray

    ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    try:
        yield
        assert ray.is_initialized(), "a cluster of someone else was shut down"
    finally:
        ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_actors_answer_as_one_process_does(trained, folder, tmp_path):
    _two_workers_predict_what_one_process_predicts(trained, folder, tmp_path)
    _more_workers_than_fit_are_refused_at_once(trained, folder, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_actors_measure_as_one_process_does(trained, folder):
    _two_workers_measure_what_one_process_measures(trained, folder)
    assert rtrain.evaluate(trained, ["num_workers=2"]) == rtrain.evaluate(trained)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_actors_fail_as_one_process_does(trained, folder, tmp_path):
    _a_value_that_cannot_be_used_is_told_as_in_one_process(trained, tmp_path)
    _a_model_that_fails_is_told_with_the_rows(folder, tmp_path)


def _two_workers_predict_what_one_process_predicts(trained, folder, tmp_path):
    path = f"dataset.path={folder}/new-*.parquet"
    assert rtrain.predict(trained, tmp_path / "here.parquet", [path]) == 2 * NUM_ROWS
    assert rtrain.predict(trained, tmp_path / "there.parquet", [path, "num_workers=2"]) == 2 * NUM_ROWS
    here, there = (parquet.read_table(tmp_path / f"{name}.parquet") for name in ("here", "there"))
    assert here["id"].to_pylist() == [*range(NUM_ROWS), *range(NUM_ROWS)]
    assert there.equals(here)


def _two_workers_measure_what_one_process_measures(trained, folder):
    path = f"dataset.path={folder}/new-0.parquet"
    assert rtrain.evaluate(trained, [path, "num_workers=2"]) == rtrain.evaluate(trained, [path])


def _a_value_that_cannot_be_used_is_told_as_in_one_process(trained, tmp_path):
    bad = table(5).set_column(1, "a", pa.array([0.5] * 15_000 + [None] * 5_000))
    parquet.write_table(bad, tmp_path / "new-1.parquet", row_group_size=3_000)
    said = []
    for words in ([], ["num_workers=2"]):
        with pytest.raises(ConfigError) as caught:
            rtrain.predict(trained, tmp_path / "out.csv", [f"dataset.path={tmp_path}/new-1.parquet", *words])
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "new-1.parquet: values are missing in 'a' 3000 times (first in row 15001)" in said[0]
    assert not list(tmp_path.glob("*out.csv*"))


def _a_model_that_fails_is_told_with_the_rows(folder, tmp_path):
    run = train_broken(folder, tmp_path)
    path = write_broken_rows(tmp_path, 99.0)
    said = r"^ArithmeticError: a row is too large \(in the rows after row 6,000\)"
    for words in ([], ["num_workers=1"]):
        with pytest.raises(PredictionError, match=said):
            rtrain.predict(run.path, tmp_path / "out.csv", [f"dataset.path={path}", *words])
    assert not list(tmp_path.glob("*out.csv*"))


def train_broken(folder, project):
    (project / "pyproject.toml").write_text("")
    (project / "my_broken_models.py").write_text(BROKEN)
    (project / "config.yaml").write_text(MODEL_CONFIG)
    words = ["dataset=parquet", f"dataset.path={folder}/train.parquet", "dataset.label=kind", "dataset.drop=[id]"]
    words += ["dataset.normalize=false", "trainer.max_epochs=1", "num_workers=0", f"run.root_dir={project}/runs"]
    return rtrain.fit(str(project / "config.yaml"), words)


def write_broken_rows(folder, value):
    """Write rows of which those after the first 8,000 make the model fail."""
    rows = table(0, 9_000).set_column(1, "a", pa.array([0.5] * 8_000 + [value] * 1_000))
    parquet.write_table(rows, folder / "bad.parquet", row_group_size=3_000)
    return folder / "bad.parquet"


def _more_workers_than_fit_are_refused_at_once(trained, folder, tmp_path):
    with pytest.raises(
        NotEnoughResourcesError, match=r"requests 3 workers(.|\n)*rtrain predict .*dataset.path=.* num_workers=2"
    ):
        rtrain.predict(trained, tmp_path / "out.csv", [f"dataset.path={folder}/new-0.parquet", "num_workers=3"])


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_signal_leaves_neither_a_file_nor_a_process(start, trained, folder, tmp_path, num_workers):
    (tmp_path / "many").mkdir()
    for number in range(300):
        (tmp_path / "many" / f"{number}.parquet").symlink_to(folder / "new-0.parquet")
    words = ["dataset.path=many", f"num_workers={num_workers}", "-o", "out.csv"]
    line = [Path(sys.executable).with_name("rtrain"), "predict", str(trained), *words]
    process = start(
        line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    _wait(lambda: list(tmp_path.glob(".out.csv-*.tmp")) or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (143, "")
    assert [path.name for path in tmp_path.iterdir()] == ["many"]
    _wait(lambda: not _group_is_there(process.pid))


def _wait(done):
    deadline = time.monotonic() + 90
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _group_is_there(number):
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_prediction(folder, tmp_path, capfd):
    run = train_broken(folder, tmp_path)
    path = write_broken_rows(tmp_path, -99.0)
    capfd.readouterr()
    words = [str(run.path), f"dataset.path={path}", "num_workers=1", "-o", str(tmp_path / "out.csv")]
    assert command(["predict", *words]) == 1
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: Ray lost a worker")
    assert "Traceback" not in output.err
    assert len(output.err.splitlines()) < 4
    assert not list(tmp_path.glob("*out.csv*"))


@pytest.mark.slow
def test_a_hundred_workers_on_this_machine_are_one_per_core(trained, folder, caplog):
    path = f"dataset.path={folder}/new-0.parquet"
    assert rtrain.evaluate(trained, [path, "num_workers=100"]) == rtrain.evaluate(trained, [path])
    assert "of 100 are used" in caplog.text
