"""Arguments of estimators that name columns."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn_runs import fit, make_conf, small_dataset

from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.testing.workers import newest
from rtrain.trainers.sklearn.build import build_estimator
from rtrain.trainers.sklearn.predictor import load_predictor

TREES = "ensemble.HistGradientBoostingClassifier"
NODE = {"_target_": f"sklearn.{TREES}", "monotonic_cst": {"b": -1, "d": 1}, "categorical_features": ["c"]}
PLACED = {"monotonic_cst": [0, -1, 0, 1], "categorical_features": [2]}


def built(conf):
    return build_estimator(conf, small_dataset().info, 0, Builder()).get_params(deep=True)


def test_columns_are_named_as_the_data_does(tmp_path):
    data = small_dataset()
    for split in data.splits.values():
        split.columns["x"][:, 2] = split.columns["y"] % 2
        split.columns["y"][:] = split.columns["y"] > 0  # constraints are for two classes
    conf = make_conf(TREES, **{key: value for key, value in NODE.items() if key != "_target_"}, max_iter=5)
    fit(tmp_path, conf, data)
    train = data.splits["train"].columns
    by_hand = HistGradientBoostingClassifier(max_iter=5, random_state=0, **PLACED).fit(train["x"], train["y"])
    found = load_predictor(newest(tmp_path, conf, data)).predict(train["x"])[:, :2]
    np.testing.assert_allclose(found, by_hand.predict_proba(train["x"]), rtol=1e-5)


@pytest.mark.parametrize(
    ("conf", "before"),
    [
        (make_conf("calibration.CalibratedClassifierCV", estimator=NODE), "estimator__"),
        (make_conf("ensemble.VotingClassifier", estimators=[["a", NODE]]), "a__"),
    ],
    ids=["one inside", "one of several"],
)
def test_columns_of_estimators_inside_are_named_too(conf, before):
    found = built(conf)
    assert {name: found[before + name] for name in PLACED} == PLACED


def test_places_stay_places_and_columns_that_a_pipeline_makes_keep_their_names():
    assert {name: built(make_conf(TREES, **PLACED))[name] for name in PLACED} == PLACED
    step = {"_target_": "sklearn.preprocessing.StandardScaler"}
    pipeline = {"_target_": "sklearn.pipeline.make_pipeline", "_args_": [step, NODE]}
    for conf, before in (
        (make_conf("pipeline.make_pipeline", _args_=[step, NODE]), ""),
        (make_conf("calibration.CalibratedClassifierCV", estimator=pipeline), "estimator__"),
    ):
        assert built(conf)[f"{before}histgradientboostingclassifier__monotonic_cst"] == {"b": -1, "d": 1}


@pytest.mark.parametrize("argument", ["monotonic_cst", "categorical_features"])
def test_an_unknown_column_is_an_error_that_names_it(argument):
    wrong = {"monotonic_cst": {"bb": 1}, "categorical_features": ["bb"]}[argument]
    with pytest.raises(ConfigError, match=rf"{argument}: small has no column 'bb'\.\ndid you mean: b"):
        built(make_conf(TREES, **{argument: wrong}))
