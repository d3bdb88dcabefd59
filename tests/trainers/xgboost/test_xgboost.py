"""XGBoost through rtrain: the trees of XGBoost alone, resumed as if never interrupted, on one worker or shared."""

from functools import partial
from typing import ClassVar

import boosting_runs
import numpy as np
import pytest
import torch
import xgboost
from boosting_contract import BoostingTests
from boosting_runs import make_dataset, ranking_dataset, real_dataset
from exactness import assert_exact

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.datasets.base import Dataset
from rtrain.errors import ConfigError, TrainingError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.small_data import streamed
from rtrain.testing.workers import make_job, make_worker
from rtrain.trainers.xgboost.config import Conf
from rtrain.trainers.xgboost.loop import train
from rtrain.trainers.xgboost.plugin import Plugin

STUMP = {"max_depth": 1, "max_cat_to_onehot": 1}
fit = partial(boosting_runs.fit, "xgboost")


class TestBoosting(BoostingTests):
    trainer, error, stump = "xgboost", "rmse", STUMP
    drawing: ClassVar = {"max_depth": 3, "subsample": 0.7, "colsample_bynode": 0.5}
    starting_again: ClassVar = {"tree_method": "approx", "subsample": 0.5}
    poisson = "count:poisson"
    absolute: ClassVar = {"objective": "reg:absoluteerror", "learning_rate": 0.5}
    no_metric: ClassVar = {"disable_default_eval_metric": True, "learning_rate": 0.5}

    def trees(self, folder):
        return trees(folder)


def trees(folder):
    return xgboost.Booster(model_file=latest_checkpoint(folder) / "model.ubj").get_dump(with_stats=True)


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris"])
def test_the_metrics_are_those_of_xgboost_alone(tmp_path, name):
    dataset = real_dataset(name)
    channel = fit(tmp_path, dataset, params={"max_depth": 3, "eta": 0.3}, num_boost_round=20)
    columns = {split: dataset.splits[split].columns for split in ("train", "test")}
    train_matrix = xgboost.QuantileDMatrix(columns["train"]["x"], label=columns["train"]["y"])
    test_matrix = xgboost.QuantileDMatrix(columns["test"]["x"], label=columns["test"]["y"], ref=train_matrix)
    task = {
        "breast_cancer": {"objective": "binary:logistic", "eval_metric": "logloss"},
        "diabetes": {"objective": "reg:squarederror", "eval_metric": "rmse"},
        "iris": {"objective": "multi:softprob", "num_class": 3, "eval_metric": "mlogloss"},
    }[name]
    found = {}
    params = {"max_depth": 3, "eta": 0.3, "seed": 0, **task}
    booster = xgboost.train(
        params, train_matrix, 20, evals=[(test_matrix, "test")], evals_result=found, verbose_eval=False
    )
    metric = task["eval_metric"]
    by_round = [record.metrics[f"test/{metric}"] for record in channel.events]
    assert by_round == pytest.approx(found["test"][metric], rel=1e-6)
    assert trees(tmp_path) == booster.get_dump(with_stats=True)


GOING_ON = {
    "nothing drawn": {},
    "rows and columns": {"subsample": 0.7, "colsample_bytree": 0.5, "colsample_bylevel": 0.7, "colsample_bynode": 0.8},
    "dart": {"booster": "dart", "rate_drop": 0.3, "subsample": 0.7},
    "exact": {"tree_method": "exact", "subsample": 0.5},
    "approx": {"tree_method": "approx", "colsample_bynode": 0.5},
    "linear": {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "random"},
}
STARTING_AGAIN = {
    "approx": {"tree_method": "approx", "subsample": 0.5},
    "linear": {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "shuffle"},
}


def interrupted(folder, data, stops, **params):
    """Return what is sent after interruptions of a training whose model is that of an uninterrupted one."""
    params = params if params.get("booster") == "gblinear" else {"max_depth": 3, **params}
    return assert_exact(
        folder, lambda run, channel: fit(run, data, channel=channel, params=params, num_boost_round=12), stops
    )[1]


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "iris"])
@pytest.mark.parametrize("params", GOING_ON)
def test_a_resumed_run_goes_on_to_the_same_model(tmp_path, name, params):
    channel = interrupted(tmp_path, real_dataset(name), [0, 2, 5], **GOING_ON[params])
    assert channel.events[0].step == 8


@pytest.mark.parametrize("params", STARTING_AGAIN)
def test_what_no_model_holds_is_grown_again_from_the_first_round(tmp_path, params):
    channel = interrupted(tmp_path, real_dataset("diabetes"), [5], **STARTING_AGAIN[params])
    assert channel.events[0].step == 1


@pytest.mark.parametrize(("params", "first"), [({"subsample": 0.5}, 6), ({"lambdarank_unbiased": True}, 1)])
def test_a_ranking_resumes_to_the_same_model(tmp_path, params, first):
    assert interrupted(tmp_path, ranking_dataset(), [5], **params).events[0].step == first


@pytest.mark.parametrize(("name", "shape"), [("diabetes", (442,)), ("iris", (150, 3))])
def test_a_run_that_starts_from_scores_resumes_to_the_same_model(tmp_path, name, shape):
    margin = np.random.default_rng(0).normal(size=shape).astype("float32")
    interrupted(tmp_path, real_dataset(name, base_margin=margin), [5], subsample=0.6)


def test_objective_and_metric_may_be_the_users_own(tmp_path):
    own = {"objective_function": f"{__name__}:squared", "metric_functions": [f"{__name__}:largest"]}
    dataset = real_dataset("diabetes")
    metrics = fit(tmp_path, dataset, allow=(__name__,), num_boost_round=5, **own).metrics
    assert metrics["test/largest"] > 0
    usual = fit(tmp_path / "usual", dataset, num_boost_round=5, params={"base_score": 0.5})
    assert metrics["test/rmse"] == pytest.approx(usual.metrics["test/rmse"], rel=0.05)


def squared(predictions, matrix):
    return predictions - matrix.get_label(), np.ones_like(predictions)


def largest(predictions, matrix):
    return "largest", float(np.abs(predictions - matrix.get_label()).max())


def test_a_stream_gives_the_same_trees_as_rows_in_memory(tmp_path):
    dataset = real_dataset("breast_cancer")
    stream = streamed(dataset.splits["train"].columns, piece_rows=50)
    fit(tmp_path / "a", dataset, num_boost_round=5)
    fit(tmp_path / "b", Dataset(dataset.info, {**dataset.splits, "train": stream}), num_boost_round=5)
    assert trees(tmp_path / "a") == trees(tmp_path / "b")


def check(dataset, *, num_workers=1, **keys):
    conf = RtrainConf(trainer=Conf(**keys), scaling=ScalingConf(num_workers=num_workers), run=RunConf(name="test"))
    Plugin().check(make_job(conf, dataset, "xgboost"))


def test_a_good_conf_passes():
    check(real_dataset("iris"), params={"max_depth": 3, "lambda": 1, "eval_metric": ["merror"], "tree_method": "hist"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"params": {"max_dept": 3}}, "params.max_dept: there is no such parameter.*\n.*params.max_depth"),
        ({"params": {"eta": "fast"}}, r"^trainer.params.eta: must be a number, not 'fast'$"),
        ({"params": {"max_depth": -3}}, r"trainer.params.max_depth: XGBoost rejects -3"),
        ({"params": {"subsample": 3}}, "subsample exceed bound"),
        ({"params": {"nthread": 3}}, "set by rtrain.\nUse trainer.num_threads"),
        ({"params": {"enable_categorical": True}}, "set by rtrain.\ndataset.categorical names"),
        ({"params": {"objective": "binary:logistic"}}, "is for 2 classes, but real has 3"),
        ({"params": {"objective": "reg:squarederror"}}, "is for regression, but real is for classification"),
        ({"params": {"objective": "multi:softmax"}}, "try: trainer.params.objective=multi:softprob"),
        (
            {"params": {"objective": "nonsense"}},
            r"params.objective: XGBoost rejects .*: Unknown objective function",
        ),
        ({"params": {"objective": "multi:softprop"}}, "try: trainer.params.objective=multi:softprob"),
        (
            {"params": {"tree_method": "histt"}},
            r"params.tree_method: XGBoost rejects .* valid values are: .*'hist'",
        ),
        ({"eval_splits": ["val"]}, "eval_splits: real has no split val, only train, test"),
        ({"objective_function": "xgboost:nothing"}, "trainer.objective_function"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_before_anything_starts(keys, message):
    with pytest.raises(ConfigError, match=message):
        check(real_dataset("iris"), **keys)


def test_what_categories_do_not_go_with_is_named_before_anything_starts():
    rows = {"x": np.zeros((10, 2), "float32"), "y": np.zeros(10, "float32")}
    dataset = make_dataset(rows, np.arange(10), feature_names=("a", "b"), categories={"b": ("red", "green")})
    for params in ({"tree_method": "exact"}, {"booster": "gblinear"}):
        with pytest.raises(ConfigError, match="doesn't support categorical features"):
            check(dataset, params=params)


@pytest.mark.parametrize("params", [{}, {"max_depth": 3}])
def test_a_gpu_that_is_hidden_from_xgboost_is_not_blamed_on_its_parameters(params, monkeypatch):
    """Its metrics of several classes start CUDA on a CPU, too, where there is a driver."""

    def hidden(params, rows):
        raise xgboost.core.XGBoostError("[1:2:3] /src/cuda_dr_utils.cc:32: cudaErrorNoDevice: no device\nStack trace:")

    monkeypatch.setattr("rtrain.trainers.xgboost.params.try_out", hidden)
    with pytest.raises(ConfigError, match="cudaErrorNoDevice") as caught:
        check(real_dataset("iris"), params=params)
    assert "trainer.params" not in str(caught.value)
    assert "CUDA_VISIBLE_DEVICES" in caught.value.hint


def test_a_gpu_that_is_not_there_is_an_error_in_process_and_on_a_worker(tmp_path):
    dataset = real_dataset("iris")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    conf = RtrainConf(trainer=Conf(), scaling=ScalingConf(num_workers=0, use_gpu=True), run=RunConf(name="test"))
    with pytest.raises(ConfigError, match=r"scaling\.use_gpu: .*\ntry: use_gpu=false"):
        Plugin().check(make_job(conf, dataset, "xgboost"))
    worker = make_worker(tmp_path, Conf(), dataset)
    worker.use_gpu = True
    with pytest.raises(TrainingError, match="no GPU on worker 0"):
        train(worker)
