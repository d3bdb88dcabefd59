"""Categories reach estimators that know what to do with them, at whatever depth; others are refused."""

import pytest
from sklearn_runs import make_conf, small_dataset

from rtrain.config.schema import RtrainConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.testing.workers import make_job
from rtrain.trainers.sklearn.build import build_estimator
from rtrain.trainers.sklearn.checks import check_conf


def node(path, **arguments):
    return {"_target_": f"sklearn.{path}", **arguments}


def piped(*steps):
    return node("pipeline.make_pipeline", _args_=list(steps))


LINEAR, SCALER = node("linear_model.LogisticRegression"), node("preprocessing.StandardScaler")
ENCODER = node("preprocessing.OneHotEncoder", handle_unknown="ignore")
CHOSEN = node("compose.ColumnTransformer", transformers=[["one", ENCODER, ["b"]]], remainder="passthrough")
TREES = node("ensemble.HistGradientBoostingClassifier", max_iter=2)
WRAPPED = {
    "alone": lambda inner: inner,
    "in a search": lambda inner: node("model_selection.GridSearchCV", estimator=inner, param_grid={}),
    "in a vote": lambda inner: node("ensemble.VotingClassifier", estimators=[["one", inner], ["two", inner]]),
    "in a stack": lambda inner: node("ensemble.StackingClassifier", estimators=[["one", inner]]),
    "calibrated": lambda inner: node("calibration.CalibratedClassifierCV", estimator=inner),
}
DATA = small_dataset(categories={"b": ("x", "y")})


def check(estimator):
    conf = make_conf(
        estimator["_target_"].removeprefix("sklearn."), **{k: v for k, v in estimator.items() if k[0] != "_"}
    )
    conf.estimator = estimator
    check_conf(make_job(RtrainConf(trainer=conf), DATA))
    return conf


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize(
    "inner", [piped(CHOSEN, LINEAR), piped(ENCODER, LINEAR), TREES], ids=["chosen", "encoded", "trees"]
)
def test_encoders_and_trees_may_be_inside(wrap, inner):
    check(wrap(inner))


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("inner", [LINEAR, piped(SCALER, LINEAR)], ids=["plain", "scaled"])
def test_codes_of_categories_are_not_taken_for_quantities(wrap, inner):
    with pytest.raises(ConfigError, match="needs numbers, but b of small are categorical"):
        check(wrap(inner))


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_trees_inside_know_which_features_are_categories(wrap):
    parts = build_estimator(check(wrap(TREES)), DATA.info, 0, Builder()).get_params(deep=True)
    found = [value for key, value in parts.items() if key.rpartition("__")[2] == "categorical_features"]
    assert found
    assert all(value == [1] for value in found)


def test_what_the_config_says_of_categories_holds():
    for said in (None, [0]):
        conf = check({**TREES, "categorical_features": said})
        assert build_estimator(conf, DATA.info, 0, Builder()).categorical_features == said
