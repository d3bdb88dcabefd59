"""LightGBM through rtrain: the trees of LightGBM alone, resumed as if never interrupted."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

import boosting_runs
import lightgbm
import numpy as np
import pytest
from boosting_contract import BoostingTests
from boosting_runs import LOADERS, real_dataset

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf
from rtrain.datasets.base import Dataset
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.small_data import small_dataset, streamed
from rtrain.testing.workers import make_job
from rtrain.trainers.lightgbm.config import Conf
from rtrain.trainers.lightgbm.params import _reported_metrics
from rtrain.trainers.lightgbm.plugin import Plugin
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

STUMP = {"num_leaves": 2, "min_data_per_group": 5}
fit = partial(boosting_runs.fit, "lightgbm")


class TestBoosting(BoostingTests):
    trainer, error, stump = "lightgbm", "l2", STUMP
    drawing: ClassVar = {"num_leaves": 7, "bagging_fraction": 0.7, "bagging_freq": 3, "feature_fraction": 0.5}
    starting_again: ClassVar = {"boosting": "dart", "num_leaves": 7}
    poisson = "poisson"
    absolute: ClassVar = {"metric": "mean_absolute_error", "learning_rate": 0.5}
    no_metric: ClassVar = {"metric": "None", "learning_rate": 0.5}

    def trees(self, folder):
        return trees(folder)


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
def test_the_metrics_are_those_of_lightgbm_alone(tmp_path, name):
    dataset, params = real_dataset(name), {"num_leaves": 7}
    channel = fit(tmp_path, dataset, params=params, num_boost_round=20)
    rows = {split: dataset.splits[split].columns for split in ("train", "test")}
    whole = lightgbm.Dataset(rows["train"]["x"], label=rows["train"]["y"])
    test = lightgbm.Dataset(rows["test"]["x"], label=rows["test"]["y"], reference=whole)
    found = {}
    settings = {**params, **TASKS[name], "seed": 0, "deterministic": True, "force_row_wise": True, "verbosity": -1}
    recording = [lightgbm.record_evaluation(found)]
    booster = lightgbm.train(settings, whole, 20, valid_sets=[test], valid_names=["test"], callbacks=recording)
    metric = TASKS[name]["metric"]
    by_round = [record.metrics[f"test/{metric}"] for record in channel.events]
    assert by_round == pytest.approx(found["test"][metric], rel=1e-6)
    assert trees(tmp_path) == trees_of(booster.model_to_string())


COLUMNS = {"feature_fraction": 0.5, "feature_fraction_bynode": 0.7, "extra_trees": True}
DRAWING = {
    "nothing": {},
    "rows": {"bagging_fraction": 0.7, "bagging_freq": 1},
    "rows now and then": {"bagging_fraction": 0.4, "bagging_freq": 4},
    "rows by class": {"pos_bagging_fraction": 0.5, "neg_bagging_fraction": 0.9, "bagging_freq": 3},
    "columns": COLUMNS,
    "both": {"bagging_fraction": 0.7, "bagging_freq": 3, **COLUMNS},
}


@pytest.mark.parametrize("drawing", DRAWING)
@pytest.mark.parametrize("name", TASKS)
def test_a_resumed_run_goes_on_to_the_same_trees(tmp_path, name, drawing):
    dataset, params = real_dataset(name), {"num_leaves": 7, **DRAWING[drawing]}
    assert_goes_on(tmp_path, dataset, params)


def assert_goes_on(folder, dataset, params, cuts=(1, 6, 13), **keys):
    """Stop a training after so many rounds, go on, and compare trees and metrics with an uninterrupted one."""
    whole = fit(folder / "whole", dataset, params=params, num_boost_round=16, **keys)
    for cut in cuts:
        fit(folder / str(cut), dataset, params=params, num_boost_round=cut, **keys)
        resumed = fit(folder / str(cut), dataset, params=params, num_boost_round=16, **keys)
        assert resumed.events[0].step == cut + 1
        assert trees(folder / str(cut)) == trees(folder / "whole"), cut
        assert resumed.metrics == whole.metrics


@pytest.mark.parametrize("name", TASKS)
def test_a_run_that_starts_from_scores_goes_on_to_the_same_trees(tmp_path, name):
    shape = (150, 3) if name == "iris" else (len(boosting_runs.LOADERS[name]().target),)
    margin = np.random.default_rng(0).normal(size=shape).astype("float32")
    assert_goes_on(tmp_path, real_dataset(name, base_margin=margin), {"num_leaves": 7})


@pytest.mark.parametrize("params", [{}, {"linear_tree": True}, DRAWING["both"]], ids=str)
def test_categories_missing_values_and_weights_go_on_to_the_same_trees(tmp_path, params):
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, 30, 1000), rng.normal(size=1000)], axis=1).astype("float32")
    y = np.nan_to_num(np.sin(x[:, 0] * 7) + x[:, 1])
    x[rng.random(x.shape) < 0.1] = np.nan
    columns = {"x": x, "y": y, "weight": rng.random(1000).astype("float32")}
    facts = {"feature_names": ("color", "size"), "categories": {"color": tuple(map(str, range(30)))}}
    assert_goes_on(tmp_path, boosting_runs.make_dataset(columns, np.arange(1000), **facts), params)


def test_a_stream_goes_on_to_the_same_trees(tmp_path):
    dataset = real_dataset("breast_cancer")
    splits = {name: streamed(split.columns, piece_rows=50) for name, split in dataset.splits.items()}
    assert_goes_on(tmp_path, Dataset(dataset.info, splits), {"num_leaves": 7}, cuts=(6,))


SAMPLING = [
    {"bagging_fraction": 0.05, "bagging_freq": 1},
    {"subsample": 0.3, "subsample_freq": 1},
    {"pos_bagging_fraction": 0.2, "neg_bagging_fraction": 0.9, "bagging_freq": 1},
    {"boosting": "rf", "bagging_fraction": 0.3, "bagging_freq": 1},
    {"data_sample_strategy": "goss", "top_rate": 0.1, "other_rate": 0.1},
    {"bagging_by_query": True, "bagging_fraction": 0.2, "bagging_freq": 1},
]


OBJECTIVES = {"two": "binary", "three": "multiclass", "ranking": "lambdarank", "regression": "l2"}
OF_ONE = {"pos_bagging_fraction": "two", "bagging_by_query": "ranking"}
"""What LightGBM has for one of them."""


@pytest.mark.parametrize(
    ("task", "sampling"),
    [
        (task, one)
        for task in OBJECTIVES
        for one in SAMPLING
        if all(task == OF_ONE[name] for name in one if name in OF_ONE)
    ],
    ids=str,
)
def test_small_shares_of_the_rows_are_accepted(task, sampling):
    kinds = {"two": 2, "three": 3}.get(task)
    of_classes = small_dataset(task="regression" if kinds is None else "classification", shape=(4,)).info
    info = replace(of_classes, task=task if kinds is None else "classification", num_classes=kinds)
    params = {"objective": OBJECTIVES[task], "verbosity": -1, **({"num_class": 3} if task == "three" else {})}
    assert _reported_metrics({**params, **sampling}, info)


@pytest.mark.parametrize("more", [{}, {"objective": "rank_xendcg"}, {"bagging_by_query": True}], ids=str)
def test_a_ranking_goes_on_to_the_same_trees(tmp_path, more):
    params = {"bagging_fraction": 0.5, "bagging_freq": 2, **more}
    assert_goes_on(tmp_path, boosting_runs.ranking_dataset(), params)


def test_rounds_in_which_nothing_could_be_split_count_after_a_resume_too(tmp_path):
    """LightGBM adds no tree in them, so that there are fewer trees than rounds."""
    params = {"num_leaves": 3, "min_data_in_leaf": 45, "learning_rate": 0.5, **DRAWING["both"]}
    assert_goes_on(tmp_path, real_dataset("iris"), params)
    assert len(trees(tmp_path / "whole").split("Tree=")) - 1 < 16 * 3


@pytest.mark.parametrize(
    "params",
    [
        {"boosting": "dart"},
        {"data_sample_strategy": "goss"},
        {"boosting": "rf", **RANDOM},
        {"use_quantized_grad": True},
        {"cegb_penalty_feature_coupled": [5.0] * 30},
    ],
    ids=str,
)
def test_what_no_model_holds_is_grown_again_from_the_first_round(tmp_path, params):
    dataset, params = real_dataset("breast_cancer"), {"num_leaves": 7, "learning_rate": 0.5, **params}
    whole = fit(tmp_path / "a", dataset, params=params, num_boost_round=20)
    fit(tmp_path / "b", dataset, params=params, num_boost_round=9)
    resumed = fit(tmp_path / "b", dataset, params=params, num_boost_round=20)
    assert trees(tmp_path / "a") == trees(tmp_path / "b")
    assert resumed.metrics == whole.metrics
    assert resumed.events[0].step == 1


def test_objective_and_metric_may_be_the_users_own(tmp_path):
    own = {"objective_function": f"{__name__}:squared", "metric_functions": [f"{__name__}:largest"]}
    channel = fit(tmp_path, real_dataset("diabetes"), allow=(__name__,), num_boost_round=20, **own)
    scores = [record.metrics["test/largest"] for record in channel.events]
    assert scores[-1] < scores[0]


def squared(predictions, data):
    return predictions - data.get_label(), np.ones_like(predictions)


def largest(predictions, data):
    return "largest", float(np.abs(predictions - data.get_label()).max()), False


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"params": {"num_leafs": 3}}, "params.num_leafs: there is no such parameter.*\n.*params.num_leaves"),
        ({"params": {"n_jobs": 3}}, "set by rtrain.\nUse trainer.num_threads"),
        ({"params": {"first_metric_only": True}}, "set by rtrain.\n.*run.checkpoint.best.monitor"),
        ({"params": {"early_stopping_min_delta": 0.1}}, "set by rtrain.\nUse trainer.early_stopping.min_delta"),
        (
            {"params": {"metric": "multi_eror"}},
            "params.metric: LightGBM has no metric 'multi_eror'.\ntry: trainer.params.metric=multi_error",
        ),
        (
            {"params": {"num_leaves": 1}},
            r"params.num_leaves: LightGBM rejects 1: Check failed: .* > \(1\)$",
        ),
        ({"params": {"learning_rate": "fast"}}, r"^trainer.params.learning_rate: must be a number, not 'fast'$"),
        ({"params": {"bagging_fraction": 3}}, r"trainer.params.bagging_fraction: LightGBM rejects 3"),
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


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_a_random_forest_that_starts_from_scores_is_refused(name):
    dataset = real_dataset(name, base_margin=np.zeros(len(LOADERS[name]().target), "float32"))
    for params, refused in (({}, False), ({"boost": "rf", **RANDOM}, True)):
        job = make_job(RtrainConf(trainer=Conf(params=params), run=RunConf(name="test")), dataset, "lightgbm")
        if refused:
            with pytest.raises(ConfigError, match=r"dataset\.base_margin: the trees of a random forest"):
                Plugin().check(job)
        else:
            Plugin().check(job)


def test_what_lightgbm_finds_wrong_while_it_trains_is_one_line(tmp_path):
    with pytest.raises(TrainingError, match=r"^LightGBM: .*outside \[0, 1\]$"):
        fit(tmp_path, real_dataset("diabetes"), params={"objective": "cross_entropy"})


def test_the_users_own_metric_says_whether_smaller_is_better(tmp_path):
    keys = {
        "metric_functions": [f"{__name__}:cost"],
        "num_boost_round": 100,
        "early_stopping": EarlyStoppingConf(patience=5),
    }
    params = {"metric": "None", "learning_rate": 0.5}
    channel = fit(tmp_path, real_dataset("diabetes"), allow=(__name__,), params=params, **keys)
    costs = [record.metrics["test/cost"] for record in channel.events]
    assert len(costs) == int(np.argmin(costs)) + 1 + 5 > 6


def cost(predictions, data):
    return "cost", float(np.square(predictions - data.get_label()).mean()), False


def test_a_metric_that_lightgbm_would_leave_out_in_silence_is_an_error():
    conf = RtrainConf(trainer=Conf(params={"metric": ["rmse", "rmsee"]}), run=RunConf(name="test"))
    with pytest.raises(ConfigError, match="LightGBM has no metric 'rmsee'"):
        Plugin().check(make_job(conf, real_dataset("diabetes"), "lightgbm"))
