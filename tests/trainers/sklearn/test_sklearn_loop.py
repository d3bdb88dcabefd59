"""Fitting, in one call and in epochs."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn_runs import RecordingChannel, fit, make_conf, small_dataset

from rtrain.errors import TrainingError
from rtrain.testing.workers import newest
from rtrain.trainers.sklearn import loop
from rtrain.trainers.sklearn.config import CrossValidationConf
from rtrain.trainers.sklearn.predictor import load_predictor

FOREST = make_conf("ensemble.RandomForestClassifier", n_estimators=20)
MLP = {"hidden_layer_sizes": [8], "learning_rate_init": 0.01}


def test_it_fits_what_scikit_learn_fits_by_hand(tmp_path):
    data = small_dataset()
    found = fit(tmp_path, FOREST, data, seed=3).metrics
    train, test = data.splits["train"].columns, data.splits["test"].columns
    by_hand = RandomForestClassifier(20, random_state=3).fit(train["x"], train["y"])
    assert found["test/accuracy"] == accuracy_score(test["y"], by_hand.predict(test["x"]))
    assert found["test/loss"] == pytest.approx(log_loss(test["y"], by_hand.predict_proba(test["x"])), rel=1e-12)


def test_the_manifest_hears_of_rows_and_importances(tmp_path):
    channel = fit(tmp_path, FOREST)
    assert channel.worker_facts[-1]["num_rows"] == {"train": 120, "test": 40}
    importance = channel.model_facts[-1]["feature_importance"]["estimator"]
    assert set(importance) == {"a", "b", "c", "d"}
    assert sum(importance.values()) == pytest.approx(1)


def test_the_manifest_hears_what_a_search_has_found(tmp_path):
    forest = {"_target_": "sklearn.ensemble.RandomForestClassifier", "n_estimators": 5}
    search = make_conf("model_selection.GridSearchCV", estimator=forest, param_grid={"max_depth": [1, 4]}, cv=3)
    facts = fit(tmp_path, search).model_facts[-1]
    assert facts["best_params"] == {"max_depth": 4}
    assert 0.5 < facts["best_score"] <= 1
    assert set(facts["feature_importance"]["estimator"]) == {"a", "b", "c", "d"}


def test_a_regression_has_errors(tmp_path):
    data = small_dataset("regression")
    found = fit(tmp_path, make_conf("linear_model.LinearRegression"), data).metrics
    assert found["test/mse"] == found["test/loss"] < 1e-10
    assert found["test/mae"] < 1e-5


def test_inputs_are_standardized_as_the_dataset_says(tmp_path):
    plain, scaled = small_dataset(), small_dataset(mean=(1.0,) * 4, std=(100.0,) * 4)
    conf = make_conf("neighbors.KNeighborsClassifier")
    assert fit(tmp_path / "a", conf, plain).metrics["test/accuracy"] == pytest.approx(
        fit(tmp_path / "b", conf, scaled).metrics["test/accuracy"], abs=0.03
    )
    logistic = make_conf("linear_model.LogisticRegression")
    fit(tmp_path / "c", logistic, scaled)
    small = load_predictor(newest(tmp_path / "c", logistic, scaled))
    x = scaled.splits["test"].columns["x"]
    assert np.ptp(small.predict(x)) < 0.5 < np.ptp(small.predict(x * 100))


def test_rows_without_weight_are_not_learned_from(tmp_path):
    rng = np.random.default_rng(1)

    def weights(count):
        return {"weight": (rng.random(count) < 0.5).astype("float32")}

    data = small_dataset(more=weights)
    conf = make_conf("linear_model.LogisticRegression")
    metrics = fit(tmp_path / "a", conf, data).metrics
    columns, test = data.splits["train"].columns, data.splits["test"].columns
    kept = columns["weight"] > 0
    by_hand = LogisticRegression().fit(columns["x"][kept], columns["y"][kept])
    found = load_predictor(newest(tmp_path / "a", conf, data)).predict(columns["x"])
    right = by_hand.predict(test["x"]) == test["y"]
    assert metrics["test/accuracy"] == pytest.approx(np.average(right, weights=test["weight"]))
    np.testing.assert_allclose(found, by_hand.predict_proba(columns["x"]), atol=1e-3)


def test_weights_reach_the_last_step_of_a_pipeline(tmp_path):
    data = small_dataset(more=lambda count: {"weight": np.ones(count, "float32")})
    steps = [{"_target_": "sklearn.preprocessing.StandardScaler"}, {"_target_": "sklearn.linear_model.Ridge"}]
    conf = make_conf("pipeline.make_pipeline", _args_=steps)
    regression = small_dataset("regression", more=lambda count: {"weight": np.ones(count, "float32")})
    assert fit(tmp_path, conf, regression).metrics["test/mse"] < 0.1
    assert data.info.columns == ("weight",)


def test_categories_are_known_to_gradient_boosting(tmp_path):
    data = small_dataset(more=None, categories={"b": ("x", "y")})
    for split in data.splits.values():
        split.columns["x"][:, 1] = split.columns["y"] % 2
        split.columns["x"][::5, 1] = np.nan
    conf = make_conf("ensemble.HistGradientBoostingClassifier", max_iter=5)
    fit(tmp_path, conf, data)
    estimator = load_predictor(newest(tmp_path, conf, data)).model
    assert estimator.is_categorical_.tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("name", "keys"),
    [("neural_network.MLPClassifier", MLP), ("linear_model.SGDClassifier", {"loss": "log_loss"})],
)
def test_a_resumed_training_in_epochs_is_the_same(tmp_path, name, keys):
    conf = make_conf(name, max_epochs=4, batch_size=50, **keys)
    whole = fit(tmp_path / "a", conf)
    fit(tmp_path / "b", conf, channel=RecordingChannel(stop_after=5))
    resumed = fit(tmp_path / "b", conf)
    assert [record["step"] for record in whole.checkpoints] == [3, 6, 9, 12]
    assert whole.metrics["test/accuracy"] > 0.5
    for name in ("test/accuracy", "test/loss"):
        assert resumed.metrics[name] == whole.metrics[name]
    assert resumed.metrics.get("train/epoch_loss") == whole.metrics.get("train/epoch_loss")


def test_predictions_that_are_no_numbers_fail_the_run_and_name_the_estimator(tmp_path):
    conf = make_conf("neighbors.RadiusNeighborsRegressor", radius=1e-6)
    channel = RecordingChannel()
    with pytest.raises(TrainingError) as caught:
        fit(tmp_path, conf, small_dataset("regression"), channel=channel)
    assert "trainer.estimator" in str(caught.value)
    assert any("no neighbors" in text for text in channel.notices)


def test_early_stopping_ends_the_epochs(tmp_path):
    early = {"monitor": "test/loss", "patience": 2, "min_delta": 100.0}
    from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

    conf = make_conf("neural_network.MLPClassifier", max_epochs=50, early_stopping=EarlyStoppingConf(**early), **MLP)
    assert fit(tmp_path, conf).checkpoints[-1]["epoch"] == 3


def test_a_finished_fit_is_not_done_again(tmp_path):
    fit(tmp_path, FOREST)
    assert fit(tmp_path, FOREST).events == []


def test_cross_validation_is_scikit_learns(tmp_path):
    data = small_dataset()
    conf = make_conf("tree.DecisionTreeClassifier", cross_validation=CrossValidationConf(folds=4))
    found = fit(tmp_path, conf, data, seed=1).metrics
    from sklearn.tree import DecisionTreeClassifier

    columns = data.splits["train"].columns
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    scores = cross_val_score(DecisionTreeClassifier(random_state=1), columns["x"], columns["y"], cv=folds)
    assert found["cv/accuracy"] == pytest.approx(scores.mean())
    assert found["cv/accuracy_std"] == pytest.approx(scores.std())


def test_cross_validation_takes_any_scorer_and_errors_are_positive(tmp_path):
    some = CrossValidationConf(folds=3, scoring=["f1_macro", "roc_auc_ovr"])
    found = fit(tmp_path / "a", make_conf("naive_bayes.GaussianNB", cross_validation=some)).metrics
    assert {"cv/f1_macro", "cv/roc_auc_ovr"} <= found.keys()
    errors = make_conf("linear_model.Ridge", cross_validation=CrossValidationConf(folds=3))
    found = fit(tmp_path / "b", errors, small_dataset("regression")).metrics
    assert found["cv/mae"] > 0 < found["cv/mse"]


@pytest.mark.parametrize(
    ("parallel", "num_machines", "backend"),
    [("auto", 1, "local"), ("auto", 2, "ray"), ("local", 2, "local"), ("ray", 1, "ray")],
)
def test_joblib_runs_where_the_key_says(monkeypatch, parallel, num_machines, backend):
    import ray

    asked = {}
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True}] * num_machines)
    monkeypatch.setattr(ray, "available_resources", lambda: {"CPU": 6.0})
    monkeypatch.setattr(loop, "parallel_config", lambda **given: asked.update(given))
    conf = make_conf("ensemble.RandomForestClassifier", parallel=parallel)
    loop._side_by_side(SimpleNamespace(in_process=False), conf, num_threads=3)
    assert asked == ({"backend": "ray", "n_jobs": 6} if backend == "ray" else {"n_jobs": 3})
