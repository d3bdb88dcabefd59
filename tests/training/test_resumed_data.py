"""A run is resumed with the rows that it began with, or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtrain
from rtrain.config.session import Session
from rtrain.datasets.base import DatasetInfo
from rtrain.datasets.registry import confs
from rtrain.errors import ConfigError
from rtrain.runs.run import Run
from rtrain.schemas import schemas
from rtrain.testing.workers import make_manifest
from rtrain.training.resuming import READ_FROM, Resumption, may_change_anyway

REFUSED = {
    *("seed", "split", "sample", "limit", "normalize", "num_shuffle_rows", "on_error", "task"),
    *("label", "features", "drop", "categorical", "ids", "weight", "group", "base_margin", "dtype", "dtypes"),
    *("preprocessors", "on_missing", "absent", "num_features", "first_column", "shape", "target"),
    *("image_size", "channels", "input", "text", "tokenizer", "block_size", "each"),
    *("noise", "num_classes", "num_rows", "na_values", "keep_default_na"),
}
"""Keys that choose, split or prepare rows. A new key of a dataset belongs here, unless it is one of ``READ_FROM``."""


def test_every_key_of_every_dataset_has_its_place():
    keys = {one.name for conf in confs().values() for one in dataclasses.fields(conf)}
    assert keys == REFUSED | set(READ_FROM)
    assert not REFUSED & set(READ_FROM)


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_what_chooses_and_prepares_rows_may_not_change(key):
    assert not may_change_anyway(f"dataset.{key}", frozenset({key}))
    assert not may_change_anyway(f"dataset.{key}.some.part", frozenset({key}))


@pytest.mark.parametrize("key", READ_FROM)
def test_where_the_same_rows_are_read_from_may_change(key):
    assert may_change_anyway(f"dataset.{key}", frozenset())


def test_another_source_may_not_be_taken():
    assert not may_change_anyway("dataset", frozenset())
    assert not may_change_anyway("dataset.type", frozenset())


INFO = DatasetInfo(
    name="csv",
    task="classification",
    input_shape=(2,),
    num_classes=2,
    class_names=("a", "b"),
    feature_names=("c", "n"),
    categories={"c": ("x", "y")},
    columns=("weight",),
    num_rows={"train": 8, "test": 2},
    fingerprint="f",
    memory="resident",
    memory_reason="",
    mean=(0.0, 1.5),
    std=(1.0, 2.0),
)
OTHERS: dict[str, Any] = {
    "memory": "stream",
    "task": "regression",
    "input_shape": (3,),
    "dtype": "float64",
    "num_classes": 3,
    "class_names": ("b", "a"),
    "feature_names": ("n", "c"),
    "num_rows": {"train": 7, "test": 3},
    "categories": {"c": ("w", "x", "y")},
    "columns": (),
    "target_dtype": "float64",
    "mean": (0.0, 1.6),
    "std": (1.0, 2.1),
}
"""Facts of other rows than those of ``INFO``, each of which a model or a position in an epoch depends on."""


def resumption(**changes):
    stored = json.loads(json.dumps({**asdict(INFO), **changes}))
    return Resumption(
        run_dir=Path("runs/x"),
        manifest=make_manifest(dataset=stored, config={"trainer": {"type": "torch"}}),
        changed={},
    )


def test_every_fact_of_a_dataset_has_its_place():
    told = {"name", "fingerprint", "memory_reason", "missing", "num_missing", "merged_targets", "num_skipped"}
    told |= {"own_columns", "parts", "num_ranges", "original_sizes"}
    assert {one.name for one in dataclasses.fields(DatasetInfo)} == OTHERS.keys() | told


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("may_differ", [True, False])
def test_what_the_model_depends_on_is_compared(name, may_differ):
    with pytest.raises(ConfigError, match=name):
        resumption(fingerprint="g").check_data(dataclasses.replace(INFO, **{name: OTHERS[name]}), may_differ)


@pytest.mark.parametrize("name", ["mean", "std"])
def test_rows_that_would_be_scaled_otherwise_are_told(name):
    with pytest.raises(ConfigError, match=rf"the {name} of the rows is another one, by which they are scaled"):
        resumption(fingerprint="g").check_data(dataclasses.replace(INFO, **{name: OTHERS[name]}), may_differ=True)


def test_other_content_needs_a_word():
    assert resumption().check_data(INFO) is None
    with pytest.raises(ConfigError, match=r"run\.resume_data=changed"):
        resumption(fingerprint="g").check_data(INFO)
    assert "have changed" in resumption(fingerprint="g").check_data(INFO, may_differ=True)


def test_a_manifest_of_before_that_knows_less_is_taken():
    old = resumption()
    for name in ("categories", "columns", "target_dtype", "memory"):
        del old.manifest.dataset[name]
    assert old.check_data(INFO) is None


def test_another_order_of_the_same_rows_is_told():
    old = resumption()
    del old.manifest.dataset["num_ranges"]  # as in runs of before
    assert old.check_data(INFO) is None
    assert "in another order" in old.check_data(dataclasses.replace(INFO, num_ranges=3))
    assert resumption(num_ranges=3).check_data(dataclasses.replace(INFO, num_ranges=3)) is None


def test_the_same_statistics_up_to_rounding_are_the_same():
    assert resumption().check_data(dataclasses.replace(INFO, mean=(0.0, 1.5 + 1e-9))) is None


def write(path, seed=0):
    rows = np.random.default_rng(seed).normal(size=(60, 3))
    np.savetxt(path, rows, "%.6f", ",", header="a,b,y", comments="")


@pytest.fixture(scope="module", params=["resident", "stream"])
def half(request, tmp_path_factory):
    """Rounds of a run that is to have more, and its file."""
    root = tmp_path_factory.mktemp(request.param)
    write(root / "rows.csv")
    data = ["dataset=csv", f"dataset.path={root}/rows.csv", "dataset.label=y", f"dataset.memory={request.param}"]
    data += ["dataset.split.by_hash=a", "dataset.features=[a,b]"]
    words = [*data, "num_workers=0", "trainer.num_boost_round=2", "run.name=x"]
    run = rtrain.fit("xgboost", [*words, f"run.root_dir={root}/runs"])
    return run, root, words


@pytest.fixture
def begun(half, tmp_path):
    """Return a copy of the run, its file, which may be changed, and the words that began it."""
    run, root, words = half
    shutil.copy2(root / "rows.csv", tmp_path / "rows.csv")
    path = tmp_path / "runs" / "x" / run.path.name
    path.parent.mkdir(parents=True)
    subprocess.run(["cp", "-r", run.path, path], check=True)
    return Run.load(path), tmp_path / "rows.csv", words


def change_labels(file):
    """Let rows have each other's labels; their number, features and splits stay."""
    head, *rows = file.read_text().splitlines()
    parts = [row.rpartition(",") for row in rows]
    shifted = zip(parts, [*parts[1:], parts[0]], strict=True)
    file.write_text("\n".join([head, *(f"{one[0]},{other[2]}" for one, other in shifted)]) + "\n")
    os.utime(file, (1, 1))


MORE = "trainer.num_boost_round=4"


@pytest.mark.parametrize("word", ["dataset.seed=7", "dataset.split.test=0.5", "dataset.sample=0.9", "dataset.drop=[a]"])
def test_other_rows_are_refused_by_their_key_and_nothing_is_touched(begun, word):
    run, _, _ = begun
    with pytest.raises(ConfigError) as raised:
        rtrain.resume(run.path, [MORE, word, "run.resume_data=changed"])
    assert word.partition("=")[0] in str(raised.value)
    assert Run.load(run.path).manifest == run.manifest


def test_auto_begins_a_new_run_with_other_rows(begun):
    run, file, words = begun
    words = [*words, MORE, f"dataset.path={file}", f"run.root_dir={run.path.parents[1]}", "run.resume=auto"]
    assert rtrain.fit("xgboost", [*words, "dataset.seed=7"]).path != run.path


@pytest.mark.parametrize("half", ["resident"], indirect=True)
def test_the_same_rows_in_another_place_are_taken(begun):
    run, file, _ = begun
    assert rtrain.resume(run.path, [MORE, f"dataset.path={file}"]).manifest.step == 4


def test_other_content_in_the_same_number_of_rows_is_refused_without_the_word(begun):
    run, file, _ = begun
    change_labels(file)
    with pytest.raises(ConfigError, match=r"run\.resume_data=changed"):
        rtrain.resume(run.path, [MORE, f"dataset.path={file}"])
    assert Run.load(run.path).manifest == run.manifest


def test_content_that_is_meant_to_be_another_is_taken_and_noted(begun):
    run, file, _ = begun
    change_labels(file)
    more = rtrain.resume(run.path, [MORE, f"dataset.path={file}", "run.resume_data=changed"])
    assert more.manifest.step == 4
    assert any("run.resume_data" in change for change in more.manifest.resumes[-1]["changed"])


def test_a_key_that_the_run_could_not_know_is_no_change(begun):
    run, _, _ = begun
    stored = json.loads((run.path / "manifest.json").read_text())
    del stored["config"]["dataset"]["on_missing"], stored["config"]["dataset"]["split"]["by_group"]
    (run.path / "manifest.json").write_text(json.dumps(stored))
    with pytest.raises(ConfigError, match=r"dataset\.on_missing"):
        rtrain.resume(run.path, [MORE, "dataset.on_missing=keep"])
    assert rtrain.resume(run.path, [MORE]).manifest.step == 4


def test_the_word_makes_no_other_config_of_a_trial_of_a_sweep():
    hashes = []
    for words in ([], ["run.resume_data=changed", "run.resume=auto"], ["run.seed=1"]):
        with Session("xgboost", words, schemas()) as session:
            hashes.append(session.check().config_hash)
    assert hashes[0] == hashes[1] != hashes[2]
