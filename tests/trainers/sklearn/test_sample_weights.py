"""Weights of rows, in estimators that hold others."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_runs import fit, make_conf, small_dataset

from rtrain.config.schema import RtrainConf
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job, newest
from rtrain.trainers.sklearn.checks import check_conf
from rtrain.trainers.sklearn.predictor import load_predictor


def node(name, **arguments):
    return {"_target_": f"sklearn.{name}", **arguments}


LOGISTIC, RIDGE = node("linear_model.LogisticRegression"), node("linear_model.Ridge")
KNN, SCALER = node("neighbors.KNeighborsClassifier"), node("preprocessing.StandardScaler")
SCALED = node("pipeline.make_pipeline", _args_=[SCALER, LOGISTIC])
GRID = {"C": [0.01, 1.0]}
L = LogisticRegression
OF_CLASSES = {
    "model_selection.GridSearchCV": ({"estimator": LOGISTIC, "param_grid": GRID}, GridSearchCV(L(), GRID)),
    "a pipeline": (
        {"estimator": SCALED, "param_grid": {"logisticregression__C": GRID["C"]}},
        GridSearchCV(make_pipeline(StandardScaler(), L()), {"logisticregression__C": GRID["C"]}),
    ),
    "model_selection.RandomizedSearchCV": (
        {"estimator": LOGISTIC, "param_distributions": GRID, "n_iter": 2},
        RandomizedSearchCV(L(), GRID, n_iter=2),
    ),
    "ensemble.VotingClassifier": (
        {"estimators": [["a", LOGISTIC], ["b", "drop"]], "voting": "soft"},
        VotingClassifier([("a", L()), ("b", "drop")], voting="soft"),
    ),
    "ensemble.StackingClassifier": ({"estimators": [["a", LOGISTIC]]}, StackingClassifier([("a", L())])),
}
OF_NUMBERS = {
    "ensemble.VotingRegressor": ({"estimators": [["a", RIDGE]]}, VotingRegressor([("a", Ridge())])),
    "compose.TransformedTargetRegressor": ({"regressor": RIDGE}, TransformedTargetRegressor(Ridge())),
    "a regressor left out": ({}, TransformedTargetRegressor()),
}


def weighted(task):
    return small_dataset(
        task, more=lambda count: {"weight": np.random.default_rng(count).choice([0.01, 30], count).astype("float32")}
    )


def conf_of(name, arguments):
    names = {"a pipeline": "model_selection.GridSearchCV", "a regressor left out": "compose.TransformedTargetRegressor"}
    return make_conf(names.get(name, name), **arguments)


def inner_name(conf):
    return "logisticregression__sample_weight" if "logisticregression__C" in str(conf) else "sample_weight"


@pytest.mark.parametrize("name", [*OF_CLASSES, *OF_NUMBERS])
def test_weights_reach_the_estimators_inside_as_in_scikit_learn(tmp_path, name):
    data = weighted("classification" if name in OF_CLASSES else "regression")
    arguments, by_hand = (OF_CLASSES | OF_NUMBERS)[name]
    conf = conf_of(name, arguments)
    fit(tmp_path, conf, data)
    found = load_predictor(newest(tmp_path, conf, data)).predict(data.splits["test"].columns["x"])
    train, test = data.splits["train"].columns, data.splits["test"].columns
    predict = "predict_proba" if name in OF_CLASSES else "predict"
    expected, without = (
        getattr(by_hand.fit(train["x"], train["y"], **more), predict)(test["x"])
        for more in ({inner_name(arguments): train["weight"]}, {})
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if name in OF_CLASSES:
        assert not np.allclose(found, without, rtol=1e-2)


@pytest.mark.parametrize(
    "conf",
    [
        make_conf("model_selection.GridSearchCV", estimator=KNN, param_grid={"n_neighbors": [1]}),
        make_conf("ensemble.VotingClassifier", estimators=[["a", LOGISTIC], ["b", KNN]]),
        make_conf("ensemble.VotingClassifier", estimators=[["a", LOGISTIC], ["b", SCALED]]),
        make_conf("ensemble.StackingClassifier", estimators=[["a", LOGISTIC]], final_estimator=KNN),
        make_conf("multiclass.OneVsRestClassifier", estimator=LOGISTIC),
    ],
    ids=["a search", "one of two", "by another argument", "the last one", "one that hands nothing on"],
)
def test_weights_that_not_all_estimators_inside_take_are_refused(conf):
    with pytest.raises(ConfigError, match="does not support weights"):
        check_conf(make_job(RtrainConf(trainer=conf), weighted("classification")))
