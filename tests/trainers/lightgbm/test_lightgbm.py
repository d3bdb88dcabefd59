"""LightGBM through rtrain: the trees of LightGBM alone, resumed as if never interrupted."""

import lightgbm
import numpy as np
import pytest
from boosting_runs import LOADERS, make_dataset, ranking_dataset, real_dataset

from rtrain.config.schema import RtrainConf, RunConf
from rtrain.errors import ConfigError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import RecordingChannel, make_job, make_worker, newest
from rtrain.trainers.lightgbm.config import Conf
from rtrain.trainers.lightgbm.loop import train
from rtrain.trainers.lightgbm.plugin import Plugin
from rtrain.trainers.lightgbm.predictor import load_predictor


def fit(folder, dataset, *, channel=None, checkpoint=None, **keys):
    channel = channel or RecordingChannel()
    train(make_worker(folder, Conf(**keys), dataset, channel=channel, checkpoint=checkpoint or {}))
    return channel


def trees(folder):
    return trees_of((latest_checkpoint(folder) / "model.txt").read_text())


def trees_of(text):
    return text[text.index("Tree=0") : text.index("feature_importances")]


TASKS = {
    "breast_cancer": {"objective": "binary", "metric": "binary_logloss"},
    "diabetes": {"objective": "regression", "metric": "l2"},
    "iris": {"objective": "multiclass", "num_class": 3, "metric": "multi_logloss"},
}
RANDOM = {"bagging_fraction": 0.7, "bagging_freq": 1, "feature_fraction": 0.5}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("more", [{}, RANDOM], ids=str)
def test_the_metrics_are_those_of_lightgbm_alone(tmp_path, name, more):
    dataset, params = real_dataset(name), {"num_leaves": 7, **more}
    channel = fit(tmp_path, dataset, params=params, num_boost_round=20)
    rows = {split: dataset.splits[split].columns for split in ("train", "test")}
    whole = lightgbm.Dataset(rows["train"]["x"], label=rows["train"]["y"])
    test = lightgbm.Dataset(rows["test"]["x"], label=rows["test"]["y"], reference=whole)
    found = {}
    settings = {**params, **TASKS[name], "seed": 0, "deterministic": True, "force_row_wise": True, "verbosity": -1}
    recording = [lightgbm.record_evaluation(found)]
    booster = lightgbm.train(settings, whole, 20, valid_sets=[test], valid_names=["test"], callbacks=recording)
    metric = TASKS[name]["metric"]
    by_round = [record["metrics"][f"test/{metric}"] for record in channel.of("metrics")]
    assert by_round == pytest.approx(found["test"][metric], rel=1e-6)
    assert trees(tmp_path) == trees_of(booster.model_to_string())


@pytest.mark.parametrize("params", [{}, RANDOM, {"boosting": "dart"}, {"data_sample_strategy": "goss"}], ids=str)
def test_a_resumed_run_grows_the_same_trees(tmp_path, params):
    dataset, params = real_dataset("breast_cancer"), {"num_leaves": 7, **params}
    whole = fit(tmp_path / "a", dataset, params=params, num_boost_round=20)
    fit(tmp_path / "b", dataset, params=params, num_boost_round=9)
    resumed = fit(tmp_path / "b", dataset, params=params, num_boost_round=20)
    assert trees(tmp_path / "a") == trees(tmp_path / "b")
    assert resumed.metrics == whole.metrics
    assert resumed.of("metrics")[0]["step"] == (10 if set(params) == {"num_leaves"} else 1)


def test_a_request_to_stop_ends_training_with_a_checkpoint(tmp_path):
    channel = RecordingChannel(stop_after=4)
    fit(tmp_path, real_dataset("iris"), channel=channel, num_boost_round=50)
    assert [record["step"] for record in channel.of("checkpoint")] == [4]


def test_early_stopping_predicts_with_the_best_round(tmp_path):
    dataset = real_dataset("diabetes")
    conf = {"params": {"learning_rate": 0.5}, "num_boost_round": 200, "early_stopping_rounds": 5}
    scores = [record["metrics"]["test/l2"] for record in fit(tmp_path, dataset, **conf).of("metrics")]
    best = int(np.argmin(scores))
    assert len(scores) == best + 1 + 5
    rows = dataset.splits["test"].columns
    found = load_predictor(newest(tmp_path, Conf(**conf), dataset)).predict(rows["x"])
    assert np.square(found - rows["y"]).mean() == pytest.approx(scores[best], rel=1e-4)


def test_predictions_are_probabilities_that_give_the_reported_metrics(tmp_path):
    for name in ("breast_cancer", "iris"):
        dataset = real_dataset(name)
        channel = fit(tmp_path / name, dataset, num_boost_round=10)
        rows = dataset.splits["test"].columns
        found = load_predictor(newest(tmp_path / name, Conf(), dataset)).predict(rows["x"])
        assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
        assert (found.argmax(axis=1) == rows["y"]).mean() == pytest.approx(channel.metrics["test/accuracy"])
        loss = -np.log(found[np.arange(len(found)), rows["y"]]).mean()
        assert loss == pytest.approx(channel.metrics["test/loss"], rel=1e-4)


def test_a_ranking_learns_its_queries(tmp_path):
    channel = fit(tmp_path, ranking_dataset(), num_boost_round=20)
    assert channel.metrics["test/ndcg@5"] > 0.9
    assert {"test/ndcg@1", "test/ndcg@3", "test/ndcg@5"} <= set(channel.metrics)


def test_weights_and_base_margins_count(tmp_path):
    whole = real_dataset("breast_cancer").splits["train"].columns
    order, classes = np.arange(len(whole["y"])), ("a", "b")
    plain = fit(tmp_path / "plain", make_dataset(whole, order, classes=classes), num_boost_round=3)
    heavy = {**whole, "weight": np.where(whole["y"] == 1, 50, 1).astype("float32")}
    weighted = fit(tmp_path / "heavy", make_dataset(heavy, order, classes=classes), num_boost_round=3)
    assert weighted.metrics != plain.metrics
    margin = {**whole, "base_margin": np.where(whole["y"] == 1, 9, -9).astype("float32")}
    known = fit(tmp_path / "margin", make_dataset(margin, order, classes=classes), num_boost_round=1)
    assert known.metrics["test/loss"] < 0.01


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris"])
def test_predictions_start_from_the_scores_that_rows_bring(tmp_path, name):
    rng = np.random.default_rng(0)
    shape = (150, 3) if name == "iris" else (len(LOADERS[name]().target),)
    dataset = real_dataset(name, base_margin=rng.normal(size=shape).astype("float32"))
    channel = fit(tmp_path, dataset, num_boost_round=5)
    rows = dataset.splits["test"].columns
    predictor = load_predictor(newest(tmp_path, Conf(), dataset))
    found = predictor.predict_from(rows["x"], rows["base_margin"])
    if name == "diabetes":
        assert np.square(found - rows["y"]).mean() == pytest.approx(channel.metrics["test/l2"], rel=1e-4)
        return
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
    loss = -np.log(found[np.arange(len(found)), rows["y"]]).mean()
    assert loss == pytest.approx(channel.metrics["test/loss"], rel=1e-4)


def test_categories_split_by_their_names_and_missing_values_are_fine(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 600)
    x = np.stack([codes, rng.normal(size=600)], axis=1).astype("float32")
    x[rng.random(600) < 0.05, 0] = np.nan
    columns = {"x": x, "y": np.isin(codes, (1, 4)).astype("int64")}
    facts = {"feature_names": ("color", "size"), "categories": {"color": tuple("abcdef")}}
    dataset = make_dataset(columns, np.arange(600), classes=("no", "yes"), **facts)
    channel = fit(tmp_path, dataset, params={"num_leaves": 2, "min_data_per_group": 5}, num_boost_round=20)
    assert channel.metrics["test/accuracy"] > 0.9
    assert next(iter(channel.of("model")[-1]["facts"]["feature_importance"]["gain"])) == "color"


def test_objective_and_metric_may_be_the_users_own(tmp_path):
    dataset = real_dataset("diabetes")
    own = Conf(num_boost_round=20, objective_function=f"{__name__}:squared", metric_functions=[f"{__name__}:largest"])
    worker = make_worker(tmp_path, own, dataset)
    worker.allow = (__name__,)
    train(worker)
    scores = [record["metrics"]["test/largest"] for record in worker.channel.of("metrics")]
    assert scores[-1] < scores[0]


def squared(predictions, data):
    return predictions - data.get_label(), np.ones_like(predictions)


def largest(predictions, data):
    return "largest", float(np.abs(predictions - data.get_label()).max()), False


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"params": {"num_leafs": 3}}, "params.num_leafs: there is no parameter.*\n.*params.num_leaf"),
        ({"params": {"n_jobs": 3}}, "set by rtrain.\nUse trainer.num_threads"),
        ({"params": {"eta": 0.1, "learning_rate": 0.2}}, "eta and learning_rate are the same parameter"),
        ({"params": {"bagging_fraction": 3}}, "LightGBM refuses them"),
        (
            {"params": {"objective": "binary"}},
            "but real is for classification of 3 classes",
        ),
        ({"params": {"objective": "lambdarank"}}, "lambdarank is for ranking"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_before_anything_starts(keys, message):
    with pytest.raises(ConfigError, match=message):
        Plugin().check(
            make_job(RtrainConf(trainer=Conf(**keys), run=RunConf(name="test")), real_dataset("iris"), "lightgbm")
        )
