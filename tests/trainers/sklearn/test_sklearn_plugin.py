"""What is found before anything starts, and predictions from checkpoints."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn_runs import fit, make_conf, small_dataset

from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.datasets.base import RawChunk
from rtrain.errors import ConfigError, PredictionError
from rtrain.evaluation import compared, metrics_of
from rtrain.testing.workers import make_job, newest
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.sklearn.checks import check_conf
from rtrain.trainers.sklearn.config import Conf, CrossValidationConf
from rtrain.trainers.sklearn.predictor import load_predictor

RIDGE, LOGISTIC = "linear_model.Ridge", "linear_model.LogisticRegression"
REFUSED = make_conf(LOGISTIC, C=-1).estimator


def check(conf, dataset=None, **scaling):
    check_conf(make_job(RtrainConf(trainer=conf, scaling=ScalingConf(**scaling)), dataset or small_dataset()))


def test_a_good_config_passes():
    check(make_conf("ensemble.RandomForestClassifier", cross_validation=CrossValidationConf()))
    check(make_conf(LOGISTIC, cross_validation=CrossValidationConf(scoring=["f1_macro", "roc_auc_ovr"])))
    check(make_conf("linear_model.SGDClassifier", max_epochs=3, early_stopping=EarlyStoppingConf()))


@pytest.mark.parametrize(
    ("conf", "data", "scaling", "says"),
    [
        (make_conf(LOGISTIC), {}, {"num_workers": 2}, "scikit-learn fits on one worker, not on 2"),
        (make_conf(LOGISTIC), {}, {"use_gpu": True}, "use_gpu"),
        (make_conf(LOGISTIC, CC=1.0), {}, {}, "no argument 'CC'"),
        (
            make_conf(LOGISTIC, C="large"),
            {},
            {},
            "The 'C' parameter of .* must be a float.* Got 'large'",
        ),
        (make_conf(RIDGE), {}, {}, "is not a classifier"),
        (make_conf(LOGISTIC), {"task": "regression"}, {}, "is not a regressor"),
        (make_conf(LOGISTIC), {"categories": {"b": ("x", "y")}}, {}, "b of small are categorical"),
        (make_conf("neighbors.KNeighborsClassifier"), {"columns": ("weight",)}, {}, "does not support weights"),
        (make_conf(LOGISTIC, max_epochs=2), {}, {}, "LogisticRegression has no partial_fit"),
        (make_conf(LOGISTIC, evaluate_split="val"), {}, {}, "no split val"),
        (make_conf(LOGISTIC, cross_validation=CrossValidationConf(scoring=["acuracy"])), {}, {}, "no scorer 'acuracy'"),
        (
            make_conf(LOGISTIC, cross_validation=CrossValidationConf(scoring=["acuracy"])),
            {},
            {},
            r"\ndid you mean: trainer\.cross_validation\.scoring=\[accuracy\]",
        ),
        (
            make_conf(LOGISTIC, cross_validation=CrossValidationConf(scoring=["mcc"])),
            {},
            {},
            r"\ndid you mean: trainer\.cross_validation\.scoring=\[matthews_corrcoef\]",
        ),
        *(
            (
                make_conf(name, cross_validation=CrossValidationConf(scoring=["accuracy", scorer])),
                {},
                {},
                f"{scorer} can't",
            )
            for name, scorer in (
                (LOGISTIC, "f1"),
                ("svm.LinearSVC", "roc_auc_ovr"),
            )
        ),
        (make_conf("metrics.accuracy_score", y_true=1, y_pred=1), {}, {}, "accuracy_score"),
    ],
)
def test_what_can_not_work_is_found_first(conf, data, scaling, says):
    with pytest.raises(ConfigError, match=says):
        check(conf, small_dataset(**data), **scaling)


@pytest.mark.parametrize(
    ("estimator", "key"),
    [
        (REFUSED, "C"),
        ({"_target_": "sklearn.multioutput.MultiOutputClassifier", "estimator": REFUSED}, "estimator.C"),
        ({"_target_": "sklearn.pipeline.make_pipeline", "_args_": [REFUSED]}, None),
    ],
)
def test_an_argument_that_scikit_learn_refuses_is_named_by_its_key(estimator, key):
    with pytest.raises(ConfigError, match=r"The 'C' parameter of LogisticRegression .* Got -1") as caught:
        check(Conf(estimator=estimator))
    assert getattr(caught.value, "key", None) == (key and f"trainer.estimator.{key}")


def test_missing_values_are_named_with_their_feature():
    data = small_dataset()
    data = replace(data, info=replace(data.info, missing=("c",)))
    check(make_conf("ensemble.RandomForestClassifier"), data)
    with pytest.raises(ConfigError, match=r"LogisticRegression does not support missing values, .* in c of"):
        check(make_conf(LOGISTIC), data)


def test_an_estimator_has_to_be_chosen():
    with pytest.raises(ValueError, match="estimator is not chosen"):
        Conf()


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        (LOGISTIC, {}),
        ("ensemble.RandomForestClassifier", {"n_estimators": 3}),
        ("ensemble.HistGradientBoostingClassifier", {"max_iter": 3}),
        ("ensemble.GradientBoostingClassifier", {"n_estimators": 3}),
        ("ensemble.AdaBoostClassifier", {"n_estimators": 3}),
        ("svm.SVC", {}),
        ("neighbors.KNeighborsClassifier", {}),
        ("naive_bayes.GaussianNB", {}),
        ("neural_network.MLPClassifier", {"max_iter": 5}),
        ("gaussian_process.GaussianProcessClassifier", {}),
        ("discriminant_analysis.LinearDiscriminantAnalysis", {}),
        ("tree.DecisionTreeClassifier", {}),
        ("linear_model.SGDClassifier", {}),
        ("linear_model.RidgeClassifier", {}),
        (
            "pipeline.make_pipeline",
            {"_args_": [{"_target_": "sklearn.preprocessing.SplineTransformer"}, {"_target_": f"sklearn.{LOGISTIC}"}]},
        ),
        (
            "model_selection.GridSearchCV",
            {"estimator": {"_target_": f"sklearn.{LOGISTIC}"}, "param_grid": {"C": [0.1, 1.0]}, "cv": 2},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_predicts_what_the_estimator_did(tmp_path, name, keys):
    conf, data = make_conf(name, **keys), small_dataset()
    found = fit(tmp_path, conf, data).metrics
    test, predictor = data.splits["test"].columns, load_predictor(newest(tmp_path, conf, data))
    output = predictor.predict(test["x"])
    assert output.shape == (40, 3)
    assert output.dtype == np.float32
    np.testing.assert_allclose(output.sum(1), 1, rtol=1e-5)
    assert (output.argmax(1) == test["y"]).mean() == found["test/accuracy"]
    if "test/loss" in found:
        shares = output / output.sum(1, keepdims=True, dtype="float64")
        assert found["test/loss"] == pytest.approx(log_loss(test["y"], shares), rel=1e-4)
        rows = compared(predictor, data.info, RawChunk(test["x"], test["y"], {}, None, None))
        assert metrics_of(data.info, [rows])["loss"] == pytest.approx(found["test/loss"], rel=1e-4)


def test_a_regression_predicts_values_and_no_rows_give_none(tmp_path):
    conf, data = make_conf(RIDGE), small_dataset("regression")
    fit(tmp_path, conf, data)
    predictor = load_predictor(newest(tmp_path, conf, data))
    assert predictor.predict(np.zeros((2, 4), "float32")).shape == (2,)
    assert predictor.predict(np.zeros((0, 4), "float32")).shape == (0,)
    with pytest.raises(PredictionError, match="rows have the shape"):
        predictor.predict(np.zeros((2, 5), "float32"))


def test_a_class_that_was_never_seen_has_no_probability(tmp_path):
    data = small_dataset()
    columns = data.splits["train"].columns
    columns["y"][columns["y"] == 1] = 2
    conf = make_conf(LOGISTIC)
    fit(tmp_path, conf, data)
    output = load_predictor(newest(tmp_path, conf, data)).predict(columns["x"])
    assert output[:, 1].max() == 0 < output[:, [0, 2]].min()
