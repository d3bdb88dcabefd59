"""What is measured of a checkpoint counts rows as training did."""

from __future__ import annotations

import numpy as np
import pytest

import rtrain
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, DatasetError
from rtrain.evaluation import Rows, metrics_of

KEYS = ["num_workers=0", "trainer.num_boost_round=3", "dataset.label=y", "dataset.weight=w", "dataset.split.test=0.5"]


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Return a run on rows of different weights, and their file."""
    root = tmp_path_factory.mktemp("weighted")
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=80), rng.integers(0, 50, 80)
    y = np.where(w > 25, 3 * x, -x) + rng.normal(size=80)
    rows = np.column_stack([x, y, w])
    np.savetxt(root / "rows.csv", rows, "%.6f", ",", header="x,y,w", comments="")
    np.savetxt(root / "bare.csv", rows[:, :2], "%.6f", ",", header="x,y", comments="")
    data = ["dataset=csv", f"dataset.path={root}/rows.csv", *KEYS]
    return rtrain.fit("xgboost", [*data, f"run.root_dir={root}/runs"]), root


def test_an_evaluation_weighs_rows_as_the_run_did(weighted):
    run, _ = weighted
    found = rtrain.evaluate(run.path, split="test")
    assert found["num_rows"] == 40
    for name in ("rmse", "mae"):
        assert found[name] == pytest.approx(run.metrics[f"test/{name}"], rel=1e-5)


def test_other_rows_are_weighed_by_their_column_or_alike(weighted):
    run, root = weighted
    by_weight = rtrain.evaluate(run.path, [f"dataset.path={root}/rows.csv"])
    alike = rtrain.evaluate(run.path, [f"dataset.path={root}/rows.csv", "dataset.weight=null"])
    assert by_weight["rmse"] != pytest.approx(alike["rmse"])
    bare = [f"dataset.path={root}/bare.csv"]
    with pytest.raises(DatasetError, match="'w'"):
        rtrain.evaluate(run.path, bare)
    assert rtrain.evaluate(run.path, [*bare, "dataset.weight=null"]) == alike


@pytest.mark.parametrize("task", ["classification", "regression", "ranking"])
def test_a_weight_of_two_counts_as_two_rows(task):
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(8), 5)
    weight = np.repeat(rng.integers(1, 3, 8), 5)
    scores = rng.random((40, 2)) if task == "classification" else rng.random(40)
    scores = scores / scores.sum(1, keepdims=True) if task == "classification" else scores
    y = rng.integers(0, 2, 40)
    info = DatasetInfo(
        **{"name": "x", "task": task, "input_shape": (1,), "num_classes": None, "num_rows": {}, "fingerprint": ""},
        **{"memory": "", "memory_reason": ""},
    )
    twice = [np.concatenate([one, one[weight == 2]]) for one in (scores, y)]
    queries = np.concatenate([group, group[weight == 2] + 100])
    plain = metrics_of(info, [Rows(*twice, queries, np.ones(len(queries)))])
    assert metrics_of(info, [Rows(scores, y, group, weight.astype(float))]) == pytest.approx(plain)


def test_rows_that_all_weigh_nothing_are_refused(weighted):
    info = weighted[0].manifest.dataset
    assert info["columns"] == ["weight"]
    rows = Rows(np.ones(3), np.ones(3), np.zeros(3), np.zeros(3))
    with pytest.raises(ConfigError, match="weigh 0"):
        metrics_of(DatasetInfo(**info), [rows])
