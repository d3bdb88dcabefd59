"""A trainer that another package brings through an entry point: the worked example of the docs, installed and run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rtrain

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "rtrain-centroid"
CONTRACT = f"""
from rtrain.testing.trainer_contract import TrainerContract


class TestCentroid(TrainerContract):
    config = {str(EXAMPLE / "digits.yaml")!r}
    trainer = "centroid"
    framework = "rtrain_centroid.loop"
    at_once = True
    distributed = False
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of a process in which the example is installed: in a folder of its own, not beside rtrain."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", target]
    subprocess.run([*pip, "--disable-pip-version-check", EXAMPLE], check=True, capture_output=True)
    ours = str(Path(rtrain.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), ours])}


def rtrain_says(environment, folder, *words):
    command = [sys.executable, "-c", "from rtrain.cli import main; main()", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_it_is_listed_and_its_keys_are_explained(environment, tmp_path):
    listed = rtrain_says(environment, tmp_path, "trainers").stdout.splitlines()
    assert ["centroid", "The nearest mean of each class, in NumPy.  [ready]"] in [
        line.split(maxsplit=1) for line in listed
    ]
    explained = rtrain_says(environment, tmp_path, "trainers", "centroid").stdout
    assert "trainer.sharpness: number > 0 = 1.0" in explained


def sweep_of(folder):
    (path,) = folder.glob("runs/s-sweep-*/sweep.json")
    return json.loads(path.read_text())


def test_its_search_proposes_the_trials(environment, tmp_path):
    words = ("sweep=halton", "sweep.num_trials=3", "trainer.sharpness=interval(1,9)", "dataset=blobs")
    config = EXAMPLE / "digits.yaml"
    done = rtrain_says(environment, tmp_path, "fit", config, "num_workers=0", "name=s", *words, "--multirun")
    assert done.returncode == 0, done.stderr
    found = [trial["overrides"] for trial in sweep_of(tmp_path)["trials"]]
    assert [float(word.partition("=")[2]) for (word,) in found] == [5.0, 3.0, 7.0]


def test_its_scheduler_stops_trials(environment, tmp_path):
    words = ("optimizer.lr=0.01,5.", "epochs=6", "sweep.metric=val/loss", "num_workers=0", "name=s", "--multirun")
    chosen = ("sweep/scheduler=patience", "sweep.scheduler.patience=1")
    done = rtrain_says(environment, tmp_path, "fit", "mlp", *words, *chosen)
    assert done.returncode == 0, done.stderr
    trials = sweep_of(tmp_path)["trials"]
    assert [trial["status"] for trial in trials] == ["succeeded", "stopped"], done.stdout
    assert trials[1]["reason"].startswith("patience: ")
    misspelt = rtrain_says(environment, tmp_path, "fit", "mlp", *words, "sweep/scheduler=patiense")
    assert "sweep/scheduler=patience" in misspelt.stderr


@pytest.mark.parametrize(
    "word", ["run.stop.max_seconds=2", "run.stop.target={test/accuracy: 0.1}", "run.log_every_steps=3"]
)
def test_keys_that_its_loop_does_not_follow_are_refused(environment, tmp_path, word):
    done = rtrain_says(environment, tmp_path, "fit", EXAMPLE / "digits.yaml", "num_workers=0", word)
    assert done.returncode == 2
    assert "has no effect: the means are computed in one step" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("monitor", [None, "train/accuracy", "test/accuracy"])
def test_the_metric_that_is_named_decides_its_best_checkpoint(environment, tmp_path, monitor):
    words = [] if monitor is None else [f"run.checkpoint.best.monitor={monitor}"]
    done = rtrain_says(environment, tmp_path, "fit", EXAMPLE / "digits.yaml", "num_workers=0", "name=b", *words)
    assert done.returncode == 0, done.stderr
    (manifest,) = [json.loads(path.read_text()) for path in tmp_path.glob("runs/b/*/manifest.json")]
    assert manifest["best"]["monitor"] == (monitor or "val/accuracy")
    assert manifest["best"]["value"] == manifest["metrics"][manifest["best"]["monitor"]]
    assert manifest["best_checkpoint"] is not None


@pytest.mark.parametrize("words", [(), ("trainer=centroid", "dataset=digits", "trainer.sharpness=3")], ids=str)
def test_it_is_chosen_by_its_name(environment, tmp_path, words):
    (tmp_path / "own.yaml").write_text("defaults: [trainer: centroid, dataset: digits]\n")
    config = "own.yaml" if not words else str(EXAMPLE / "digits.yaml")
    done = rtrain_says(environment, tmp_path, "fit", config, "num_workers=0", "name=c", *words)
    assert done.returncode == 0, done.stderr
    manifest = json.loads(next(tmp_path.glob("runs/c/*/manifest.json")).read_text())
    assert manifest["metrics"]["test/accuracy"] > 0.85
    assert manifest["config"]["trainer"] == {"type": "centroid", "sharpness": 3.0 if words else 1.0}
    assert manifest["versions"]["rtrain-centroid"] == "0.1.0"
    misspelt = rtrain_says(environment, tmp_path, "fit", config, "num_workers=0", "trainer=centriod")
    assert "try: rtrain fit" in misspelt.stderr
    assert "trainer=centroid" in misspelt.stderr


def test_its_dataset_is_chosen_by_its_name_too(environment, tmp_path):
    words = ("num_workers=0", "name=b", "dataset=blobs", "dataset.distance=9", "dataset.split.test=0.5")
    done = rtrain_says(environment, tmp_path, "fit", str(EXAMPLE / "digits.yaml"), *words)
    assert done.returncode == 0, done.stderr
    manifest = json.loads(next(tmp_path.glob("runs/b/*/manifest.json")).read_text())
    assert manifest["dataset"]["num_rows"] == {"train": 100, "test": 100}
    assert manifest["metrics"]["test/accuracy"] > 0.99
    typo = rtrain_says(environment, tmp_path, "fit", str(EXAMPLE / "digits.yaml"), "dataset=blobs", "dataset.distanc=9")
    assert "did you mean: dataset.distance" in typo.stderr
    assert "dataset.distance: number > 0 = 3.0" in rtrain_says(environment, tmp_path, "datasets", "blobs").stdout


@pytest.mark.parametrize(
    ("config", "refusal"), [(str(EXAMPLE / "digits.yaml"), "halton.Search needs conf"), ("mlp", "is not allowed")]
)
def test_its_package_is_allowed_where_it_trains(environment, tmp_path, config, refusal):
    callback = "run.callbacks=[{_target_: rtrain_centroid.halton.Search}]"
    done = rtrain_says(environment, tmp_path, "fit", config, "num_workers=0", callback)
    assert done.returncode == 2
    assert refusal in done.stderr


@pytest.mark.slow
def test_it_trains_on_a_worker_of_ray(environment, tmp_path):
    done = rtrain_says(environment, tmp_path, "fit", str(EXAMPLE / "digits.yaml"), "num_workers=1", "name=c")
    assert done.returncode == 0, done.stderr
    manifest = json.loads(next(tmp_path.glob("runs/c/*/manifest.json")).read_text())
    assert manifest["metrics"]["test/accuracy"] > 0.85
    assert manifest["workers"]["0"]["num_rows"] == manifest["dataset"]["num_rows"]


def test_a_typo_and_too_many_workers_are_refused(environment, tmp_path):
    typo = rtrain_says(environment, tmp_path, "fit", str(EXAMPLE / "digits.yaml"), "trainer.sharpnes=1")
    assert typo.returncode == 2
    assert "did you mean: trainer.sharpness" in typo.stderr
    many = rtrain_says(environment, tmp_path, "fit", str(EXAMPLE / "digits.yaml"), "num_workers=2")
    assert many.returncode == 2
    assert "trains on one worker" in many.stderr


def test_it_keeps_the_contract_of_every_trainer(environment, tmp_path):
    (tmp_path / "test_centroid.py").write_text(CONTRACT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_centroid.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
