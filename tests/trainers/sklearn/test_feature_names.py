"""Arguments of estimators that name columns."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
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


def chooser(**steps):
    """Return a ColumnTransformer whose steps have some columns each, as a config has it."""
    return {"_target_": "sklearn.compose.ColumnTransformer", "transformers": [[n, p, c] for n, (p, c) in steps.items()]}


INNER = chooser(again=("drop", ["b"]))
CHOSEN = chooser(one=("passthrough", ["d", "a"]), single=("drop", "c"), place=("drop", [1]), inner=(INNER, ["b"]))
PREFIXES = {
    "first of a pipeline": ("pipeline.make_pipeline", {"_args_": [CHOSEN, NODE]}, "columntransformer__"),
    "in a union": (
        "pipeline.Pipeline",
        {
            "steps": [
                ["all", {"_target_": "sklearn.pipeline.FeatureUnion", "transformer_list": [["choose", CHOSEN]]}],
                ["all-trees", NODE],
            ]
        },
        "all__choose__",
    ),
    "of a pipeline within": (
        "calibration.CalibratedClassifierCV",
        {"estimator": {"_target_": "sklearn.pipeline.make_pipeline", "_args_": [CHOSEN, NODE]}},
        "estimator__columntransformer__",
    ),
}


@pytest.mark.parametrize(("target", "arguments", "prefix"), PREFIXES.values(), ids=PREFIXES)
def test_columns_are_chosen_by_the_names_of_the_data_where_they_are_those_of_the_data(target, arguments, prefix):
    found = built(make_conf(target, **arguments))
    columns = {name: columns for name, _, columns in found[f"{prefix}transformers"]}
    assert columns == {"one": [3, 0], "single": 2, "place": [1], "inner": [1]}
    assert [columns for _, _, columns in found[f"{prefix}inner__transformers"]] == [["b"]]


def test_a_pipeline_that_chooses_columns_by_name_learns_and_predicts(tmp_path):
    data = small_dataset()
    step = chooser(scaled=({"_target_": "sklearn.preprocessing.StandardScaler"}, ["b", "d"]))
    conf = make_conf("pipeline.make_pipeline", _args_=[step, {"_target_": "sklearn.linear_model.LogisticRegression"}])
    fit(tmp_path, conf, data)
    x, y = (data.splits["train"].columns[name] for name in ("x", "y"))
    by_hand = make_pipeline(StandardScaler(), LogisticRegression(random_state=0)).fit(x[:, [1, 3]], y)
    found = load_predictor(newest(tmp_path, conf, data)).predict(x)
    np.testing.assert_allclose(found, by_hand.predict_proba(x[:, [1, 3]]), rtol=1e-5)


def test_an_unknown_column_of_a_column_transformer_is_an_error_that_names_it():
    steps = [chooser(one=("passthrough", ["a", "bb"])), NODE]
    with pytest.raises(
        ConfigError, match=r"columntransformer__transformers: small has no column 'bb'\.\ndid you mean: b"
    ):
        built(make_conf("pipeline.make_pipeline", _args_=steps))


@pytest.mark.parametrize("argument", ["monotonic_cst", "categorical_features"])
def test_an_unknown_column_is_an_error_that_names_it(argument):
    wrong = {"monotonic_cst": {"bb": 1}, "categorical_features": ["bb"]}[argument]
    with pytest.raises(ConfigError, match=rf"{argument}: small has no column 'bb'\.\ndid you mean: b"):
        built(make_conf(TREES, **{argument: wrong}))
