"""Trials that differ in their seed or fold alone are judged together."""

import random
import re

import numpy as np
import pandas as pd
import pytest

from rtrain.cli.app import run as command
from rtrain.displays.sweep_lines import end_lines, sweep_report
from rtrain.searches.base import Objective
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.sweeps.repetitions import repeating_keys, repetitions


def a_record(folder, rows, modes=("min",)):
    """Return the record of a sweep; a row has the overrides of a trial, and what it reached."""
    record = SweepRecord(folder, {"search": "grid", "axes": []})
    record.goals = [Objective(metric=f"val/{number}", mode=mode) for number, mode in enumerate(modes)]
    record.trials = [
        Trial(
            number=number, point=(), overrides=overrides, name=f"{number:03d}-x", config_hash="x",
            **{"status": "succeeded", "values": values, **facts},
        )
        for number, (overrides, values, facts) in enumerate(rows)
    ]  # fmt: skip
    return record


@pytest.mark.parametrize(
    ("key", "repeats"),
    [
        ("run.seed", True),
        ("dataset.seed", True),
        ("++trainer.estimator.random_state", True),
        ("trainer.params.data_seed", True),
        ("+trainer.train_loop_config.fold", True),
        ("dataset.split.by_column.test", True),
        ("trainer.optimizer.lr", False),
        ("dataset.split.test", False),
        ("trainer.params.seed_per_iteration", False),
        ("vars.manifold", False),
        ("vars.n_fold", False),
        ("vars.seed", True),
        ("model", False),
    ],
)
def test_seeds_and_folds_repeat_a_trial(tmp_path, key, repeats):
    record = a_record(tmp_path, [([f"{key}={value}"], [1.0], {}) for value in (1, 2)])
    assert (repeating_keys(record.trials) == [key.lstrip("+")]) is repeats
    assert bool(repetitions(record)) is repeats


@pytest.mark.parametrize("seed", range(5))
def test_means_are_those_of_pandas(tmp_path, seed):
    draw = random.Random(seed)
    points = [(lr, depth, fold) for lr in "abc" for depth in "12" for fold in "345" if draw.random() < 0.8]
    draw.shuffle(points)
    values = [[draw.gauss(0, 1), draw.gauss(5, 1)] for _ in points]
    rows = [
        ([f"lr={lr}", f"run.seed={fold}", f"depth={depth}"], own, {})
        for (lr, depth, fold), own in zip(points, values, strict=True)
    ]
    mode = draw.choice(["min", "max"])
    found = repetitions(a_record(tmp_path, rows, (mode, "min")))
    frame = pd.DataFrame(points, columns=["lr", "depth", "seed"]).assign(
        first=[a for a, _ in values], more=[b for _, b in values]
    )
    expected = frame.groupby(["lr", "depth"])[["first", "more"]].agg(["mean", "std", "count"])
    expected["few", ""] = expected["first", "count"] < expected["first", "count"].max()
    expected = expected.sort_values([("few", ""), ("first", "mean")], ascending=[True, mode == "min"]).drop(
        columns=("few", "")
    )
    assert [(one.params["lr"], one.params["depth"]) for one in found] == list(expected.index)
    np.testing.assert_allclose([one.means for one in found], expected.xs("mean", axis=1, level=1))
    deviations = [[np.nan if value is None else value for value in one.deviations] for one in found]
    np.testing.assert_allclose(deviations, expected.xs("std", axis=1, level=1))
    assert [len(one.values) for one in found] == list(expected["first"]["count"])


def test_trials_without_a_result_of_their_whole_training_do_not_count(tmp_path):
    more = [
        ({"status": "stopped"}, [9.0]),
        ({"status": "failed"}, None),
        ({"status": "running"}, [9.0]),
        ({}, [np.inf]),
    ]
    rows = [([f"run.seed={seed}"], [float(seed)], {}) for seed in (1, 2)]
    rows += [([f"run.seed={seed}"], values, facts) for seed, (facts, values) in enumerate(more, start=3)]
    (found,) = repetitions(a_record(tmp_path, rows))
    assert found.values == [[1.0], [2.0]]


def test_the_best_mean_is_not_that_of_the_few_that_did_not_fail(tmp_path):
    rows = [([f"lr={lr}", f"run.seed={seed}"], [0.5], {}) for lr in (1, 2) for seed in (1, 2, 3)]
    rows[0] = (rows[0][0], [0.1], {})
    rows[1:3] = [(words, None, {"status": "failed"}) for words, *_ in rows[1:3]]
    record = a_record(tmp_path, rows)
    assert [one.params["lr"] for one in repetitions(record)] == ["2", "1"]
    assert "mean        val/0 0.5 ± 0  lr=2  (3 trials, by run.seed)" in end_lines(record)


def test_a_sweep_that_repeats_nothing_has_no_means(tmp_path):
    for rows in ([], [(["lr=1", "run.seed=1"], [1.0], {}), (["lr=2", "run.seed=2"], [2.0], {})]):
        record = a_record(tmp_path, rows)
        assert repetitions(record) == []
        assert "mean" not in "\n".join([*end_lines(record), *sweep_report(record)])


def test_folds_of_a_table_are_shown_with_their_mean(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    pd.DataFrame({"a": numbers[:, 0], "y": numbers.sum(1), "fold": np.arange(60) % 3}).to_csv("rows.csv", index=False)
    split = ["dataset.split.by_column.column=fold", "dataset.split.by_column.test=[0],[1],[2]"]
    words = ["num_workers=0", "dataset=csv", "dataset.path=rows.csv", "dataset.label=y", "trainer.num_boost_round=3"]
    assert command(["fit", "xgboost", *words, *split, "trainer.params.max_depth=1,3", "--multirun"]) == 0
    end = capsys.readouterr().out
    assert command(["sweep", "show", "last"]) == 0
    shown = capsys.readouterr().out
    best = re.search(
        r"^mean +test/rmse (\S+ ± \S+)  trainer\.params\.max_depth=(\d)  \(3 trials, by \S+test\)$", end, re.M
    )
    assert best is not None
    assert re.search(
        rf"alone, best mean first:\ntest/rmse +trials +max_depth\n{best[1]} +3 +{best[2]}\n\S+ ± \S+ +3 +\d\n", shown
    )
