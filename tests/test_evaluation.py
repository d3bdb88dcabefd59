"""What is measured of a checkpoint counts rows as training did."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import rtrain
from rtrain.datasets.base import DatasetInfo, RawChunk, objects
from rtrain.errors import ConfigError, DatasetError
from rtrain.evaluation import ScoredRows, compared, measure, metrics_of

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


def test_a_split_is_weighed_alike_where_the_weight_is_taken_back(weighted):
    run, root = weighted
    alike = rtrain.evaluate(run.path, ["dataset.weight=null"])
    assert alike["num_rows"] == 40
    assert alike["rmse"] != pytest.approx(rtrain.evaluate(run.path)["rmse"])
    rows = np.loadtxt(root / "rows.csv", delimiter=",", skiprows=1)
    rows[:, 2] = 1
    np.savetxt(root / "ones.csv", rows, "%.6f", ",", header="x,y,w", comments="")
    assert rtrain.evaluate(run.path, [f"dataset.path={root}/ones.csv"], split="test") == alike


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
    plain = metrics_of(info, [ScoredRows(*twice, queries, np.ones(len(queries)))])
    assert metrics_of(info, [ScoredRows(scores, y, group, weight.astype(float))]) == pytest.approx(plain)


def test_rows_that_all_weigh_nothing_are_refused(weighted):
    info = weighted[0].manifest.dataset
    assert info["columns"] == ["weight"]
    rows = ScoredRows(np.ones(3), np.ones(3), np.zeros(3), np.zeros(3))
    with pytest.raises(ConfigError, match="weight 0"):
        metrics_of(DatasetInfo(**info), [rows])


@pytest.mark.parametrize("config", ["mlp", "xgboost", "lightgbm", "sklearn"])
def test_weights_that_sum_to_little_make_no_difference(config, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    rows = np.column_stack([x, x[:, 0] > 0, np.full(80, 1e-4)])
    np.savetxt(tmp_path / "rows.csv", rows, ["%.6f", "%.6f", "%d", "%g"], ",", header="a,b,y,w", comments="")
    words = ["num_workers=0", "dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y", "dataset.weight=w"]
    words += ["trainer.max_epochs=1"] if config == "mlp" else []
    run = rtrain.fit(config, [*words, f"run.root_dir={tmp_path}/runs"])
    found = rtrain.evaluate(run.path, split="test")
    assert run.metrics["test/accuracy"] == pytest.approx(found["accuracy"], rel=1e-5)


def test_sums_of_roots_are_squared_where_rows_bring_their_own_start(tmp_path):
    rng = np.random.default_rng(0)
    x, margin = rng.random(80), rng.random(80)
    rows = np.column_stack([x, 10 * x, margin])
    np.savetxt(tmp_path / "rows.csv", rows, "%.6f", ",", header="x,y,m", comments="")
    words = ["num_workers=0", "dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y"]
    words += ["dataset.base_margin=[m]", "+trainer.params.reg_sqrt=true", "trainer.num_boost_round=3"]
    run = rtrain.fit("lightgbm", [*words, f"run.root_dir={tmp_path}/runs"])
    found = rtrain.evaluate(run.path, split="test")
    assert run.metrics["test/l2"] == pytest.approx(found["mse"], rel=1e-4)


@pytest.mark.parametrize("config", ["mlp", "xgboost", "lightgbm"])
def test_a_resume_with_another_metric_forgets_the_best_value_of_the_one_before(config, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    rows = np.column_stack([x, 3 * x + rng.normal(size=200)])
    np.savetxt(tmp_path / "rows.csv", rows, "%.6f", ",", header="x,y", comments="")
    words = ["num_workers=0", "dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y"]
    words += [f"run.root_dir={tmp_path}/runs"]
    if config == "mlp":
        stops = ["trainer.early_stopping={monitor: test/mae, patience: 3}"]
        later = ["trainer.early_stopping.monitor=test/mse", "trainer.max_epochs=8"]
        run = rtrain.fit(config, [*words, *stops, "trainer.max_epochs=5"])
        again = rtrain.resume(run.path, later)
        assert len({event.epoch for event in again.events()}) == 8  # mse, which is larger than mae, gets better
        return
    names = {"xgboost": ["mae", "rmse"], "lightgbm": ["l1", "l2"]}[config]
    key = "eval_metric" if config == "xgboost" else "metric"
    words += [f"+trainer.params.{key}={names}".replace("'", ""), "+trainer.params.eta=0.05"]
    words += [f"run.checkpoint.best.monitor=test/{names[0]}", "trainer.early_stopping={patience: 3}"]
    run = rtrain.fit(config, [*words, "trainer.num_boost_round=5"])
    again = rtrain.resume(run.path, [f"run.checkpoint.best.monitor=test/{names[1]}", "trainer.num_boost_round=20"])
    values = {event.step: event.metrics[f"test/{names[1]}"] for event in again.events() if event.step > 5}
    assert again.manifest.step == 20
    assert again.manifest.best["value"] == min(values.values())


class Broken:
    """A model of which no output is a number."""

    def predict(self, x):
        return np.full((len(x), 3, 2), np.nan)


def test_outputs_that_are_no_numbers_are_not_left_out():
    facts = {"name": "x", "input_shape": (3,), "num_classes": 2, "num_rows": {}, "fingerprint": ""}
    language, tags = (
        DatasetInfo(**facts, task=task, memory="", memory_reason="")
        for task in ("language-modeling", "token-classification")
    )
    same_length = RawChunk(np.zeros((4, 3), int), np.zeros((4, 3), int), {}, None, None)
    found = metrics_of(language, [compared(Broken(), language, same_length)])
    assert np.isnan(found["loss"])
    assert np.isnan(found["perplexity"])
    words = RawChunk(objects([["a", "b"]] * 4), objects([np.array([0, 1])] * 4), {}, None, None)
    with pytest.raises(ConfigError):
        metrics_of(tags, [compared(Broken(), tags, words)])


@pytest.fixture(scope="module")
def halved(tmp_path_factory):
    """Return a run on half of the rows of a file, the file's folder, and which rows of it made the test split."""
    root = tmp_path_factory.mktemp("halved")
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 3)).round(6)
    write_rows(root / "rows.csv", rows)
    words = ["dataset=csv", f"dataset.path={root}/rows.csv", "dataset.label=y", "dataset.split.test=0.5"]
    words += ["num_workers=0", "trainer.num_boost_round=2", f"run.root_dir={root}/runs"]
    return rtrain.fit("xgboost", words), root, rows


def write_rows(path, rows):
    np.savetxt(path, rows, "%.6f", ",", header="a,b,y", comments="")


def trained_on(run, words, caplog, **more):
    """Return how many rows of an evaluation were counted as those of training, and what was said of them."""
    caplog.clear()
    return measure(run.path, words, **more).num_trained_on, [one.getMessage() for one in caplog.records]


def test_rows_of_training_are_counted_by_content(halved, caplog):
    run, root, rows = halved
    own = [f"dataset.path={root}/rows.csv"]
    count, told = trained_on(run, own, caplog)
    assert (count, len(told)) == (30, 1)
    assert "30 of these 60 rows were used to train the model" in told[0]
    mixed = np.concatenate([rows[:20], rows[:20] + 9])
    write_rows(root / "mixed.csv", mixed)
    count, told = trained_on(run, [f"dataset.path={root}/mixed.csv"], caplog)
    assert 0 < count < 20
    assert f"{count} of these 40 rows" in told[0]
    write_rows(root / "new.csv", rows + 9)
    assert trained_on(run, [f"dataset.path={root}/new.csv"], caplog) == (0, [])


def test_a_row_with_another_label_is_not_one_of_training(halved, caplog):
    run, root, rows = halved
    write_rows(root / "relabelled.csv", rows + np.array([0, 0, 9]))
    assert trained_on(run, [f"dataset.path={root}/relabelled.csv"], caplog) == (0, [])


def test_the_split_that_training_had_says_so_and_the_others_are_free_of_it(halved, caplog):
    run, *_ = halved
    assert trained_on(run, [], caplog) == (0, [])
    count, told = trained_on(run, [], caplog, split="train")
    assert count == 30
    assert "all 30 rows were used to train the model" in told[0]


def test_where_the_rows_of_training_are_gone_nothing_is_said(halved, caplog):
    run, root, rows = halved
    write_rows(root / "copy.csv", rows)
    (root / "rows.csv").rename(root / "away.csv")
    try:
        assert trained_on(run, [f"dataset.path={root}/copy.csv"], caplog) == (None, [])
        write_rows(root / "rows.csv", rows + 1)
        count, told = trained_on(run, [f"dataset.path={root}/copy.csv"], caplog)
        assert (count, len(told)) == (None, 1)
        assert "training's data has changed since training" in told[0]
    finally:
        (root / "away.csv").rename(root / "rows.csv")


def test_streamed_rows_are_known_by_their_files(halved, caplog):
    _, root, rows = halved
    words = ["dataset=csv", f"dataset.path={root}/rows.csv", "dataset.label=y", "dataset.memory=stream"]
    words += ["dataset.split.test=0.5", "num_workers=0", "trainer.num_boost_round=2", f"run.root_dir={root}/streamed"]
    run = rtrain.fit("xgboost", words)
    assert run.manifest.dataset["memory"] == "stream"
    count, told = trained_on(run, [f"dataset.path={root}/rows.csv"], caplog)
    assert count == run.manifest.dataset["num_rows"]["train"]
    assert len(told) == 1
    write_rows(root / "copied.csv", rows)
    assert trained_on(run, [f"dataset.path={root}/copied.csv"], caplog) == (None, [])


@pytest.fixture(params=["resident", "stream"])
def wide(request, tmp_path, monkeypatch):
    """Return a run on a file of which one column is dropped, the file, and the run's words, without its memory."""
    rows = np.random.default_rng(3).normal(size=(60, 4)).round(6)
    file = tmp_path / "rows.csv"
    np.savetxt(file, rows, "%.6f", ",", header="a,b,c,y", comments="")
    if request.param == "stream":
        monkeypatch.setattr("rtrain.datasets.memory.free_bytes", lambda: 100)
    words = ["dataset=csv", f"dataset.path={file}", "dataset.label=y", "dataset.drop=[c]", "num_workers=0"]
    run = rtrain.fit("xgboost", [*words, "trainer.num_boost_round=2", f"run.root_dir={tmp_path}/runs"])
    assert run.manifest.dataset["memory"] == request.param
    monkeypatch.undo()
    return run, file, rows


def test_a_split_is_that_of_training_however_much_memory_is_free(wide, caplog, monkeypatch):
    run, *_ = wide
    if run.manifest.dataset["memory"] == "resident":
        monkeypatch.setattr("rtrain.datasets.memory.free_bytes", lambda: 4_000)
    assert trained_on(run, [], caplog) == (0, [])
    assert rtrain.evaluate(run.path)["rmse"] == pytest.approx(run.metrics["test/rmse"], rel=1e-5)
    for word in ("dataset.memory=stream", "dataset.memory=resident", "dataset.label=b"):
        with pytest.raises(ConfigError, match=rf"{word} makes different splits than in training"):
            rtrain.evaluate(run.path, [word])


def test_a_split_has_the_features_of_training_whatever_columns_came_or_went(wide, caplog):
    run, file, rows = wide
    before = rtrain.evaluate(run.path)
    np.savetxt(file, np.column_stack([rows[:, 0], rows[:, 1], rows]), "%.6f", ",", header="z,v,a,b,c,y", comments="")
    assert rtrain.evaluate(run.path) == before
    np.savetxt(file, rows[:, [0, 1, 3]], "%.6f", ",", header="a,b,y", comments="")
    assert rtrain.evaluate(run.path) == before
    is_streamed = run.manifest.dataset["memory"] == "stream"
    assert trained_on(run, [], caplog)[0] == (None if is_streamed else 0)


@pytest.mark.parametrize("memory", ["resident", "stream"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_where_the_data_of_training_has_changed_nothing_tells_what_its_splits_hold(memory, split, tmp_path, caplog):
    rows = np.random.default_rng(3).normal(size=(60, 3)).round(6)
    write_rows(tmp_path / "rows.csv", rows)
    words = ["dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y", f"dataset.memory={memory}"]
    words += ["dataset.split.test=0.5", "num_workers=0", "trainer.num_boost_round=2", f"run.root_dir={tmp_path}/runs"]
    run = rtrain.fit("xgboost", words)
    alike = ["dataset.weight=null", "scaling.num_workers=0"]
    before = run.manifest.dataset["num_rows"]["train"] if split == "train" else 0
    assert trained_on(run, alike, caplog, split=split)[0] == before
    assert trained_on(run, [], caplog, split=split)[0] == before
    write_rows(tmp_path / "rows.csv", rows[::-1] + 0.5)
    for overrides in ([], alike):
        count, told = trained_on(run, overrides, caplog, split=split)
        assert count is None
        assert [line for line in told if "has changed since training" in line]
        caplog.clear()
        run.predict(None, overrides, split=split)
        assert "the data has changed since training" in caplog.text
    write_rows(tmp_path / "rows.csv", rows)
    for overrides in ([], alike):
        caplog.clear()
        run.predict(None, overrides, split=split)
        assert "has changed" not in caplog.text or memory == "stream", "files that are written again count as others"


@pytest.mark.parametrize("trainer", ["lightgbm", "xgboost"])
def test_a_ranking_without_queries_is_not_one_query(tmp_path, monkeypatch, trainer):
    monkeypatch.chdir(tmp_path)
    rows = [f"{row % 3} qid:{row // 5} 1:{row % 7} 2:{row % 4}" for row in range(100)]
    Path("with.svm").write_text("\n".join(rows))
    Path("without.svm").write_text("\n".join(re.sub(r"qid:\d+ ", "", row) for row in rows))
    words = ["dataset=libsvm", "dataset.path=with.svm", "dataset.task=ranking", "num_workers=0"]
    run = rtrain.fit(trainer, [*words, "trainer.num_boost_round=2"])
    assert rtrain.evaluate(run.path, ["dataset.path=with.svm"])["ndcg@5"] <= 1
    with pytest.raises(ConfigError, match="which rows are of one query"):
        rtrain.evaluate(run.path, ["dataset.path=without.svm"])
    assert rtrain.predict(run.path, overrides=["dataset.path=without.svm"]).num_rows == 100


@pytest.fixture(scope="module")
def by_split(tmp_path_factory):
    """Return a run on files by split, and a folder with these and new files."""
    root = tmp_path_factory.mktemp("by_split")
    rng = np.random.default_rng(0)
    for name, count in (("train", 60), ("test", 30), ("new", 20)):
        x = rng.normal(size=count)
        np.savetxt(root / f"{name}.csv", np.column_stack([x, x > 0]), "%.6f", ",", header="x,y", comments="")
    paths = {"train": str(root / "train.csv"), "test": str(root / "test.csv")}
    keys = {"type": "csv", "path": paths, "label": "y"}
    return rtrain.fit("xgboost", KEYS[:2], dataset=keys, run={"root_dir": str(root / "runs")}), root


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("form", ["word", "leaf", "mapping", "nested", "file"])
def test_new_rows_by_split_bring_none_of_the_files_of_training(by_split, form, split):
    run, root = by_split
    new = str(root / "new.csv")
    words = {
        "word": [f"dataset.path={{{split}: {new}}}"],
        "leaf": [f"dataset.path.{split}={new}"],
        "mapping": {"dataset.path": {split: new}},
        "nested": {"dataset": {"path": {split: new}}},
        "file": [f"dataset.path={new}"],
    }[form]
    assert run.evaluate(words)["num_rows"] == 20
    assert run.evaluate()["num_rows"] == 30
    assert rtrain.predict(run.path, str(root / f"{form}_{split}.csv"), words) == 20


def test_new_rows_of_several_splits_need_a_train_file(by_split):
    run, root = by_split
    new = f"{root}/new.csv"
    for words in ([f"dataset.path={{val: {new}, test: {new}}}"], {"dataset.path": {"val": new, "test": new}}):
        with pytest.raises(ConfigError, match=r"dataset\.path: must name train"):
            run.evaluate(words)
