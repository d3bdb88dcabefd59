"""Targets of many digits, from a file to the evaluation: what is predicted and measured is right, or nothing starts."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

import rtrain
from rtrain.config.session import Session
from rtrain.datasets.registry import load_source
from rtrain.errors import ConfigError
from rtrain.schemas import schemas
from rtrain.testing.workers import make_job
from rtrain.trainers.registry import load_trainer, packages

ROWS = 60


def written(folder, first, step):
    """Write a line: the target of row n is ``first + n * step``."""
    path = folder / "rows.csv"
    lines = [f"{n},{first + n * step}" for n in range(ROWS)]
    path.write_text("\n".join(["x,y", *lines]) + "\n")
    return [f"dataset.path={path}", "dataset=csv", "dataset.label=y", f"run.root_dir={folder}/runs", "num_workers=0"]


CONFIGS = {"torch": "mlp", "tensorflow": "keras"}


@pytest.mark.parametrize("trainer", sorted(packages()))
def test_every_trainer_learns_them_in_float64_or_refuses_what_float32_would_merge(trainer):
    with Session(CONFIGS.get(trainer, trainer), ["num_workers=0"], schemas()) as session:
        composed = session.check()
    dataset = load_source(composed.resolved["dataset"]["type"]).load(composed.conf.dataset)
    wide = replace(dataset, info=replace(dataset.info, merged_targets=True, target_dtype="float64"))
    job = make_job(composed.conf, wide, trainer)
    if trainer == "sklearn":
        load_trainer(trainer).check(job)
    else:
        with pytest.raises(ConfigError, match="float32"):
            load_trainer(trainer).check(job)


LINE = ["trainer.estimator._target_=sklearn.linear_model.LinearRegression", "~trainer.estimator.n_estimators"]


@pytest.mark.parametrize(("first", "step"), [(2**24 + 1, 1), (2**31, 1), (2**50, 1), (20_000_001, 9_999)])
def test_a_line_through_numbers_of_many_digits_is_found(tmp_path, first, step):
    more = ["dataset.task=regression"]
    run = rtrain.fit("sklearn", [*written(tmp_path, first, step), *LINE, *more])
    assert rtrain.evaluate(run.path)["mae"] < max(1, first * 1e-15) / 2
    rtrain.predict(run.path, tmp_path / "out.csv", [f"dataset.path={tmp_path}/rows.csv"])
    with (tmp_path / "out.csv").open() as lines:
        found = [float(row["prediction"]) for row in csv.DictReader(lines)]
    assert found == pytest.approx([first + n * step for n in range(ROWS)], rel=1e-13, abs=0.01)


@pytest.mark.parametrize("config", ["xgboost", "lightgbm", "mlp"])
@pytest.mark.parametrize("first", [2**24 + 1, 2**53 - ROWS])
def test_what_float32_would_merge_is_refused_before_anything_is_written(tmp_path, config, first):
    with pytest.raises(ConfigError, match="trainer=sklearn"):
        rtrain.fit(config, [*written(tmp_path, first, 1), "dataset.task=regression"])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("config", ["xgboost", "lightgbm"])
def test_large_whole_numbers_of_a_wide_range_are_learned(tmp_path, config):
    words = [*written(tmp_path, 20_000_001, 1_000_003), "dataset.task=regression", "trainer.num_boost_round=5"]
    run = rtrain.fit(config, words)
    assert run.manifest.dataset["target_dtype"] == "float64"
    found = rtrain.evaluate(run.path, split="test")
    assert found["mae"] == pytest.approx(run.metrics["test/mae"], rel=1e-4)
