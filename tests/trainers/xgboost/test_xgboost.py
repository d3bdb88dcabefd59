"""XGBoost through rtrain: the trees of XGBoost alone, resumed as if never interrupted, on one worker or shared."""

import numpy as np
import pytest
import xgboost
from boosting_runs import LOADERS, make_dataset, ranking_dataset, real_dataset

from rtrain.config.schema import RtrainConf, RunConf, ScalingConf
from rtrain.datasets.base import Dataset
from rtrain.datasets.stream import Share, StreamSplit, pieces_of
from rtrain.errors import ConfigError
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import RecordingChannel, make_job, make_worker, newest
from rtrain.trainers.xgboost.config import Conf
from rtrain.trainers.xgboost.loop import train
from rtrain.trainers.xgboost.plugin import Plugin
from rtrain.trainers.xgboost.predictor import load_predictor


def fit(folder, dataset, *, channel=None, checkpoint=None, **keys):
    channel = channel or RecordingChannel()
    train(make_worker(folder, Conf(**keys), dataset, channel=channel, checkpoint=checkpoint or {}))
    return channel


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
    by_round = [record["metrics"][f"test/{metric}"] for record in channel.of("metrics")]
    assert by_round == pytest.approx(found["test"][metric], rel=1e-6)
    assert trees(tmp_path) == booster.get_dump(with_stats=True)


@pytest.mark.parametrize(
    "params", [{}, {"subsample": 0.7, "colsample_bytree": 0.5}, {"booster": "dart", "rate_drop": 0.3}]
)
def test_a_resumed_run_grows_the_same_trees(tmp_path, params):
    dataset, params = real_dataset("breast_cancer"), {"max_depth": 3, **params}
    whole = fit(tmp_path / "a", dataset, params=params, num_boost_round=20)
    fit(tmp_path / "b", dataset, params=params, num_boost_round=9)
    resumed = fit(tmp_path / "b", dataset, params=params, num_boost_round=20)
    assert trees(tmp_path / "a") == trees(tmp_path / "b")
    assert resumed.metrics == whole.metrics
    assert resumed.of("metrics")[0]["step"] == 10


def test_a_request_to_stop_ends_training_with_a_checkpoint(tmp_path):
    channel = RecordingChannel(stop_after=4)
    fit(tmp_path, real_dataset("iris"), channel=channel, num_boost_round=50)
    assert [record["step"] for record in channel.of("checkpoint")] == [4]


def test_checkpoints_come_every_so_many_rounds_and_at_the_end(tmp_path):
    channel = fit(tmp_path, real_dataset("iris"), num_boost_round=10, checkpoint={"every_steps": 4})
    assert [record["step"] for record in channel.of("checkpoint")] == [4, 8, 10]


def test_early_stopping_predicts_with_the_best_round(tmp_path):
    dataset = real_dataset("diabetes")
    channel = fit(tmp_path, dataset, params={"eta": 0.5}, num_boost_round=200, early_stopping_rounds=5)
    scores = [record["metrics"]["test/rmse"] for record in channel.of("metrics")]
    best = int(np.argmin(scores))
    assert len(scores) == best + 1 + 5
    rows = dataset.splits["test"].columns
    found = load_predictor(newest(tmp_path, Conf(), dataset)).predict(rows["x"])
    assert np.sqrt(np.square(found - rows["y"]).mean()) == pytest.approx(scores[best], rel=1e-5)
    assert channel.of("checkpoint")[-1]["metrics"]["test/rmse"] == scores[best]


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
    scores = [record["metrics"]["test/ndcg@5"] for record in channel.of("metrics")]
    assert scores[-1] > 0.9
    assert channel.of("worker")[0]["facts"]["num_rows"] == {"train": 480, "test": 120}


def test_weights_and_base_margins_count(tmp_path):
    whole = real_dataset("breast_cancer").splits["train"].columns
    order = np.arange(len(whole["y"]))
    classes = ("a", "b")
    plain = fit(tmp_path / "plain", make_dataset(whole, order, classes=classes), num_boost_round=3)
    ones = {**whole, "weight": np.ones(len(order), "float32")}
    same = fit(tmp_path / "ones", make_dataset(ones, order, classes=classes), num_boost_round=3)
    assert same.metrics == plain.metrics
    heavy = {**whole, "weight": np.where(whole["y"] == 1, 50, 1).astype("float32")}
    assert (
        fit(tmp_path / "heavy", make_dataset(heavy, order, classes=classes), num_boost_round=3).metrics != plain.metrics
    )
    margin = {**whole, "base_margin": np.where(whole["y"] == 1, 9, -9).astype("float32")}
    known = fit(tmp_path / "margin", make_dataset(margin, order, classes=classes), num_boost_round=1)
    assert known.metrics["test/logloss"] < 0.01


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
        assert np.square(found - rows["y"]).mean() == pytest.approx(channel.metrics["test/rmse"] ** 2, rel=1e-4)
        return
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-5)
    loss = -np.log(found[np.arange(len(found)), rows["y"]]).mean()
    assert loss == pytest.approx(channel.metrics["test/loss"], rel=1e-4)


def test_categories_split_by_their_names_and_missing_values_are_fine(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 600)
    y = np.isin(codes, (1, 4)).astype("int64")
    x = np.stack([codes, rng.normal(size=600)], axis=1).astype("float32")
    x[rng.random(600) < 0.05, 0] = np.nan
    facts = {"feature_names": ("color", "size"), "categories": {"color": tuple("abcdef")}}
    dataset = make_dataset({"x": x, "y": y}, np.arange(600), classes=("no", "yes"), **facts)
    channel = fit(tmp_path, dataset, params={"max_depth": 1, "max_cat_to_onehot": 1}, num_boost_round=10)
    assert channel.metrics["test/accuracy"] > 0.9
    importance = channel.of("model")[-1]["facts"]["feature_importance"]["gain"]
    assert next(iter(importance)) == "color"


def test_objective_and_metric_may_be_the_users_own(tmp_path):
    own = {"objective_function": f"{__name__}:squared", "metric_functions": [f"{__name__}:largest"]}
    dataset = real_dataset("diabetes")
    worker = make_worker(tmp_path, Conf(num_boost_round=5, **own), dataset)
    worker.allow = (__name__,)
    train(worker)
    assert worker.channel.metrics["test/largest"] > 0
    usual = fit(tmp_path / "usual", dataset, num_boost_round=5, params={"base_score": 0.5})
    assert worker.channel.metrics["test/rmse"] == pytest.approx(usual.metrics["test/rmse"], rel=0.05)


def squared(predictions, matrix):
    return predictions - matrix.get_label(), np.ones_like(predictions)


def largest(predictions, matrix):
    return "largest", float(np.abs(predictions - matrix.get_label()).max())


class Reader:
    """Pieces of an array."""

    def __init__(self, columns):
        self.columns = columns

    def read(self, key):
        yield {name: values[key : key + 50] for name, values in self.columns.items()}


def test_a_stream_gives_the_same_trees_as_rows_in_memory(tmp_path):
    dataset = real_dataset("breast_cancer")
    columns = dataset.splits["train"].columns
    count = len(columns["y"])
    stream = StreamSplit(
        reader=Reader(columns),
        pieces=pieces_of([(start, min(50, count - start)) for start in range(0, count, 50)]),
        share=Share(),
        num_rows=count,
        row_bytes=8,
        num_shuffle_rows=10,
    )
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
        ({"params": {"max_dept": 3}}, "params.max_dept: there is no parameter.*\n.*params.max_depth"),
        ({"params": {"max_depth": -3}}, "XGBoost refuses them"),
        ({"params": {"subsample": 3}}, "subsample exceed bound"),
        ({"params": {"nthread": 3}}, "set by rtrain.\nUse trainer.num_threads"),
        ({"params": {"objective": "binary:logistic"}}, "is for 2 classes, but real has 3"),
        ({"params": {"objective": "reg:squarederror"}}, "is for regression, but real is for classification"),
        ({"params": {"objective": "multi:softmax"}}, "Try: trainer.params.objective=multi:softprob"),
        ({"params": {"objective": "nonsense"}}, "XGBoost refuses them: .*nonsense"),
        ({"eval_splits": ["val"]}, "eval_splits: real has no split val, only train, test"),
        ({"objective_function": "xgboost:nothing"}, "trainer.objective_function"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_before_anything_starts(keys, message):
    with pytest.raises(ConfigError, match=message):
        check(real_dataset("iris"), **keys)
