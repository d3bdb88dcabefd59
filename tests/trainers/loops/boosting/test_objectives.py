"""Each objective of both libraries beside a script of the library alone: the same trees, predictions and metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import boosting_runs
import lightgbm
import numpy as np
import pytest
import xgboost
from boosting_runs import fit, make_dataset

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf
from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import RawChunk
from rtrain.errors import ConfigError, TrainingError
from rtrain.evaluation import compared, metrics_of
from rtrain.prediction.output import prediction_table
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import make_job
from rtrain.trainers.loops.boosting.rounds import group_sizes
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.registry import confs, load_trainer

ROUNDS, PATIENCE = 40, 3
X = np.random.default_rng(0).normal(size=(400, 4)).astype("float32")
NOISE = np.random.default_rng(1).normal(size=400)
SIGNAL = X[:, 0] + 0.5 * X[:, 1] ** 2 + NOISE
LABELS: dict[str, Any] = {
    "number": SIGNAL,
    "positive": np.exp(SIGNAL / 3),
    "count": np.floor(np.exp(SIGNAL / 2)),
    "share": 1 / (1 + np.exp(-SIGNAL)),
    "survival": np.where(NOISE > 1, -1, 1) * np.exp(SIGNAL / 3),
    "two": (SIGNAL > 0.5).astype("int64"),
    "three": np.digitize(SIGNAL, [0, 1]).astype("int64"),
    "grades": np.clip(np.round(SIGNAL + 1), 0, 3),
    "relevant": (SIGNAL > 0.5).astype("float32"),
}
CLASSES = {"two": ("no", "yes"), "three": ("a", "b", "c")}


@dataclass
class Plain:
    """What a script of the library alone gives."""

    trees: Any
    best_round: int
    predictions: np.ndarray
    values: list[float]
    """Of the metric that decides, by round."""


def dataset_of(kind):
    y = LABELS[kind] if kind in CLASSES else LABELS[kind].astype("float32")
    whole = {"x": X, "y": y}
    task = None
    if kind in ("grades", "relevant"):
        whole["group"], task = np.repeat(np.arange(40), 10), "ranking"
    return make_dataset(whole, np.arange(400), classes=CLASSES.get(kind, ()), task=task)


def columns(dataset):
    return [dataset.splits[name].columns for name in ("train", "test")]


XGBOOST = {
    "reg:squarederror": "number",
    "reg:squaredlogerror": "positive",
    "reg:logistic": "share",
    "reg:pseudohubererror": "number",
    "reg:absoluteerror": "number",
    "reg:quantileerror": "number",
    "reg:gamma": "positive",
    "reg:tweedie": "count",
    "count:poisson": "count",
    "survival:cox": "survival",
    "binary:logistic": "two",
    "binary:logitraw": "two",
    "binary:hinge": "two",
    "multi:softprob": "three",
    "rank:ndcg": "grades",
    "rank:pairwise": "grades",
    "rank:map": "relevant",
}
MORE: dict[str, dict[str, Any]] = {
    "reg:quantileerror": {"quantile_alpha": 0.9},
    "binary:logitraw": {"eval_metric": "auc"},
}
XGBOOST_CASES = {name: (name, MORE.get(name, {})) for name in XGBOOST}
XGBOOST_CASES["several quantiles"] = ("reg:quantileerror", {"quantile_alpha": [0.1, 0.5, 0.9]})
XGBOOST_CASES["several trees a round"] = ("multi:softprob", {"num_parallel_tree": 2})
XGBOOST_CASES["base score"] = ("reg:squarederror", {"base_score": 2.5, "eval_metric": ["rmse", "mae"]})
XGBOOST_CASES["monotone"] = ("reg:squarederror", {"monotone_constraints": "(1,0,0,-1)"})
XGBOOST_CASES["gamma by deviance"] = ("reg:gamma", {"eval_metric": "gamma-deviance"})
XGBOOST_CASES["logistic by auc"] = ("binary:logistic", {"eval_metric": ["logloss", "auc"]})


def plain_xgboost(params, dataset, min_delta=0.0):
    matrices = []
    for part in columns(dataset):
        ref = {"ref": matrices[0]} if matrices else {}
        matrices.append(xgboost.QuantileDMatrix(part["x"], label=part["y"], qid=part.get("group"), **ref))
    found: dict[str, Any] = {}
    booster = xgboost.train(
        {**params, "nthread": 1},
        matrices[0],
        ROUNDS,
        evals=[(matrices[1], "test")],
        callbacks=[xgboost.callback.EarlyStopping(rounds=PATIENCE, min_delta=min_delta)],
        evals_result=found,
        verbose_eval=False,
    )
    used = (0, booster.best_iteration + 1)
    predictions = booster.predict(xgboost.DMatrix(columns(dataset)[1]["x"]), iteration_range=used)
    values = list(found["test"].values())[-1]
    return Plain(booster.get_dump(with_stats=True), booster.best_iteration + 1, predictions, values)


@pytest.mark.parametrize("case", XGBOOST_CASES)
def test_an_objective_of_xgboost_is_that_of_xgboost_alone(case, tmp_path):
    objective, more = XGBOOST_CASES[case]
    dataset = dataset_of(XGBOOST[objective])
    params = {"objective": objective, "eta": 0.5, "max_depth": 3, **more}
    plain = plain_xgboost({**params, "num_class": 3} if objective == "multi:softprob" else params, dataset)
    keys = {"params": params, "num_boost_round": ROUNDS, "early_stopping": EarlyStoppingConf(patience=PATIENCE)}
    check_passes("xgboost", dataset, **keys)
    channel = fit("xgboost", tmp_path, dataset, **keys)
    trees = xgboost.Booster(model_file=latest_checkpoint(tmp_path) / "model.ubj").get_dump(with_stats=True)
    assert trees == plain.trees
    check(channel, boosting_runs.load("xgboost", tmp_path, dataset, **keys), dataset, plain)


LIGHTGBM = {
    "regression": "number",
    "regression_l1": "number",
    "huber": "number",
    "fair": "number",
    "poisson": "count",
    "quantile": "number",
    "mape": "positive",
    "gamma": "positive",
    "tweedie": "count",
    "binary": "two",
    "cross_entropy": "share",
    "cross_entropy_lambda": "share",
    "multiclass": "three",
    "multiclassova": "three",
    "lambdarank": "grades",
}
"""But for ``rank_xendcg``, which draws at random: in rtrain by the seed and the round alone."""
OTHER_NAMES = {"mean_absolute_error": "number", "softmax": "three", "ovr": "three", "xentropy": "two", "mse": "number"}
QUIET = {"verbosity": -1, "num_threads": 1, "seed": 0, "deterministic": True, "force_row_wise": True}


def plain_lightgbm(params, dataset, min_delta=0.0):
    train, test = columns(dataset)
    sizes = [group_sizes(part["group"]) if "group" in part else None for part in (train, test)]
    first = lightgbm.Dataset(train["x"], train["y"], group=sizes[0])
    found: dict[str, Any] = {}
    booster = lightgbm.train(
        {**params, **QUIET},
        first,
        ROUNDS,
        valid_sets=[first.create_valid(test["x"], test["y"], group=sizes[1])],
        valid_names=["test"],
        keep_training_booster=True,
        callbacks=[
            lightgbm.early_stopping(PATIENCE, first_metric_only=True, verbose=False, min_delta=min_delta),
            lightgbm.record_evaluation(found),
        ],
    )
    text = booster.model_to_string(num_iteration=-1)
    return Plain(trees_of(text), booster.best_iteration, booster.predict(test["x"]), next(iter(found["test"].values())))


def trees_of(text):
    return text[text.index("Tree=0") : text.index("end of trees")]


@pytest.mark.parametrize("objective", {**LIGHTGBM, **OTHER_NAMES})
def test_an_objective_of_lightgbm_is_that_of_lightgbm_alone(objective, tmp_path):
    dataset = dataset_of({**LIGHTGBM, **OTHER_NAMES}[objective])
    params = {"objective": objective, "learning_rate": 0.5, "num_leaves": 7, "min_data_in_leaf": 5}
    if dataset.info.task == "ranking":
        params |= {"eval_at": [5]}
    if objective == "quantile":
        params |= {"alpha": 0.9}
    plain = plain_lightgbm({**params, "num_class": 3} if dataset.info.num_classes == 3 else params, dataset)
    keys = {"params": params, "num_boost_round": ROUNDS, "early_stopping": EarlyStoppingConf(patience=PATIENCE)}
    check_passes("lightgbm", dataset, **keys)
    channel = fit("lightgbm", tmp_path, dataset, **keys)
    assert trees_of((latest_checkpoint(tmp_path) / "model.txt").read_text()) == plain.trees
    check(channel, boosting_runs.load("lightgbm", tmp_path, dataset, **keys), dataset, plain)


PLAIN = {"xgboost": plain_xgboost, "lightgbm": plain_lightgbm}
METRIC = {"xgboost": "eval_metric", "lightgbm": "metric"}


@pytest.mark.parametrize(("kind", "metric", "min_delta"), [("number", "rmse", 0.05), ("two", "auc", 0.01)])
@pytest.mark.parametrize("trainer", PLAIN)
def test_an_improvement_is_as_large_as_early_stopping_asks_for(trainer, kind, metric, min_delta, tmp_path):
    dataset, params = dataset_of(kind), {"learning_rate": 0.2, METRIC[trainer]: metric}
    objective = {} if kind == "number" else {"objective": {"xgboost": "binary:logistic", "lightgbm": "binary"}[trainer]}
    keys = {
        "params": {**params, **objective},
        "num_boost_round": ROUNDS,
        "early_stopping": EarlyStoppingConf(patience=PATIENCE),
    }
    every = fit(trainer, tmp_path / "every", dataset, **keys)
    keys["early_stopping"] = EarlyStoppingConf(patience=PATIENCE, min_delta=min_delta)
    check_passes(trainer, dataset, **keys)
    channel = fit(trainer, tmp_path / "large", dataset, **keys)
    plain = PLAIN[trainer](keys["params"], dataset, min_delta)
    assert channel.checkpoints[-1]["score"]["step"] == plain.best_round
    assert len(channel.events) == len(plain.values) < len(every.events)


@pytest.mark.parametrize(("kind", "given", "sums"), [("two", 2, 1), ("three", 1, 3), ("three", 2, 3), ("number", 2, 1)])
@pytest.mark.parametrize("trainer", PLAIN)
def test_scores_to_start_from_are_one_for_each_sum_of_trees(trainer, kind, given, sums):
    for count, refused in ((given, True), (sums, False)):
        margin = np.zeros((400, count) if count > 1 else 400, "float32")
        whole = {"x": X, "y": LABELS[kind], "base_margin": margin}
        dataset = make_dataset(whole, np.arange(400), classes=CLASSES.get(kind, ()))
        if refused:
            with pytest.raises(ConfigError, match=rf"base_margin: rows have {given} scores .* has {sums} sums"):
                check_passes(trainer, dataset)
        else:
            check_passes(trainer, dataset)


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("two", 2, "two classes with one sum of trees, num_class=1"),
        *(("two", 3, "real has 2 classes"), ("three", 2, "real has 3 classes"), ("three", 4, "real has 3 classes")),
        *(("number", 2, "real has no classes"), ("grades", 4, "real has no classes")),
    ],
)
@pytest.mark.parametrize("trainer", PLAIN)
def test_a_number_of_classes_that_is_not_that_of_the_data_is_refused(trainer, kind, given, says):
    with pytest.raises(ConfigError, match=rf"trainer\.params\.num_class={given}: .*{says}.*\nLeave it out"):
        check_passes(trainer, dataset_of(kind), params={"num_class": given})
    fits = {"two": 1, "three": 3}.get(kind, 1)
    check_passes(trainer, dataset_of(kind), params={"num_class": fits})


@pytest.mark.parametrize(
    ("trainer", "objective"),
    [("xgboost", "multi:softprob"), ("lightgbm", "multiclass"), ("lightgbm", "ovr")],
)
def test_an_objective_of_many_classes_takes_two_of_them(trainer, objective, tmp_path):
    dataset, params = dataset_of("two"), {"objective": objective, "learning_rate": 0.5}
    keys = {"params": params, "num_boost_round": ROUNDS, "early_stopping": EarlyStoppingConf(patience=PATIENCE)}
    check_passes(trainer, dataset, **keys)
    channel = fit(trainer, tmp_path, dataset, **keys)
    plain = PLAIN[trainer]({**params, "num_class": 2}, dataset)
    assert channel.checkpoints[-1]["score"]["value"] == pytest.approx(plain.values[plain.best_round - 1])
    predictor, columns = boosting_runs.load(trainer, tmp_path, dataset, **keys), dataset.splits["test"].columns
    np.testing.assert_allclose(predictor.predict(columns["x"]), plain.predictions, rtol=1e-5)
    rows = compared(predictor, dataset.info, RawChunk(columns["x"], columns["y"], {}, None, None))
    assert metrics_of(dataset.info, [rows])["loss"] == pytest.approx(min(plain.values), rel=1e-4)


@pytest.mark.parametrize(
    ("trainer", "metrics"), [("xgboost", ["rmse", "logloss"]), ("xgboost", ["rmse"]), ("lightgbm", ["l2"])], ids=str
)
def test_the_loss_of_a_classification_is_never_a_squared_error(trainer, metrics, tmp_path):
    dataset, keys = dataset_of("two"), {"params": {METRIC[trainer]: metrics}, "num_boost_round": 3}
    found = fit(trainer, tmp_path, dataset, **keys).metrics
    assert found.get("test/loss") == found.get("test/logloss")
    assert found["test/mse"] > 0


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("number", "mlogloss"), ("three", "logloss"), ("two", "merror"), ("grades", "merror"), ("two", "aft-nloglik")],
)
def test_a_metric_of_xgboost_that_does_not_fit_is_found_before_anything_starts(kind, metric):
    with pytest.raises(ConfigError, match=r"trainer\.params(\.eval_metric)?: XGBoost rejects"):
        check_passes("xgboost", dataset_of(kind), params={"eval_metric": metric})


@pytest.mark.parametrize("metric", ["auc", "map", "ndcg", "rmsle", "mape", "gamma-deviance", "quantile"])
def test_a_metric_of_xgboost_that_some_labels_fit_is_not_refused_for_a_regression(metric):
    params = {"objective": "reg:quantileerror", "quantile_alpha": 0.5} if metric == "quantile" else {}
    check_passes("xgboost", dataset_of("count"), params={"eval_metric": metric, **params})


@pytest.mark.parametrize(
    ("trainer", "kind", "metric"),
    [
        *(("xgboost", "two", "error"), ("xgboost", "two", "logloss"), ("xgboost", "three", "mlogloss")),
        *(("lightgbm", "two", "binary"), ("lightgbm", "three", "multi_logloss")),
    ],
)
def test_metrics_of_probabilities_are_refused_for_an_objective_that_gives_sums(trainer, kind, metric):
    keys = [{"objective_function": f"{__name__}:{trainer}_of_{kind}", "params": {METRIC[trainer]: metric}}]
    if (trainer, kind) == ("xgboost", "two"):
        keys.append({"params": {"objective": "binary:logitraw", "eval_metric": metric}})
    for one in keys:
        with pytest.raises(ConfigError, match=rf"trainer\.params\.{METRIC[trainer]}: .* sums of trees"):
            check_passes(trainer, dataset_of(kind), allow=(__name__,), **one)


def all_of_xgboost():
    """Every objective of this XGBoost, as it lists them itself."""
    with pytest.raises(xgboost.core.XGBoostError) as caught:
        xgboost.train({"objective": "none:such"}, xgboost.DMatrix(np.zeros((2, 1)), label=[0, 1]), 1)
    return re.findall(r"^Objective candidate: (\S+)", str(caught.value), re.MULTILINE)


OF_TASKS = {"classification": "two", "regression": "number", "ranking": "grades"}


@pytest.mark.parametrize("objective", all_of_xgboost())
def test_an_objective_of_xgboost_is_refused_for_data_of_another_task(objective):
    kind = objective.partition(":")[0]
    own = {"binary": "classification", "multi": "classification", "rank": "ranking"}.get(kind, "regression")
    both = {own, "classification"} if objective == "reg:logistic" else {own}
    for task in set(OF_TASKS) - both:
        with pytest.raises(ConfigError, match=r"trainer\.params\.objective: "):
            check_passes("xgboost", dataset_of(OF_TASKS[task]), params={"objective": objective})


def check_passes(trainer, dataset, *, allow=(), **keys):
    conf = RtrainConf(trainer=confs()[trainer](**keys), run=RunConf(name="test"))
    load_trainer(trainer).check(replace(make_job(conf, dataset, trainer), builder=Builder(allow)))


SHARED = {
    **dict.fromkeys(("binary_logloss", "logloss", "multi_logloss", "mlogloss"), "loss"),
    **{"l2": "mse", "l1": "mae"},
}
"""Metrics of the libraries by the names that ``rtrain evaluate`` gives them."""


def check(channel, predictor, dataset, plain):
    """Compare what a run says and what its checkpoint gives with the script."""
    record = channel.checkpoints[-1]
    best = record["score"]
    assert best["step"] == best["epoch"] == plain.best_round
    assert len(channel.events) == len(plain.values)
    assert best["value"] == pytest.approx(plain.values[plain.best_round - 1], rel=1e-6)
    x, y = (dataset.splits["test"].columns[name] for name in ("x", "y"))
    found = predictor.predict(x)
    if dataset.info.num_classes == 2:
        found = found[:, 1]
        if plain.predictions.min() < 0:
            found = np.log(found) - np.log1p(-found)
    np.testing.assert_allclose(found, plain.predictions, rtol=1e-4 if (plain.predictions < 0).any() else 1e-6)
    chunk = RawChunk(x, y, {}, dataset.splits["test"].columns.get("group"), None)
    evaluated = metrics_of(dataset.info, [compared(predictor, dataset.info, chunk)])
    name = best["monitor"].removeprefix("test/")
    name = SHARED.get(name, name)
    if name in evaluated and not name.startswith("ndcg"):  # which counts ties in another way
        assert evaluated[name] == pytest.approx(best["value"], rel=1e-5)


SURE = {
    "xgboost": (
        {"eta": 1.0, "lambda": 0, "min_child_weight": 0},
        {"two": "binary:logistic", "three": "multi:softprob"},
    ),
    "lightgbm": (
        {"learning_rate": 1.0, "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 1e-12},
        {"two": "binary", "three": "multiclassova"},
    ),
}


@pytest.mark.parametrize("trainer", SURE)
@pytest.mark.parametrize("kind", ["two", "three"])
def test_predictions_that_are_sure_and_wrong_count_in_an_evaluation_as_in_the_run(trainer, kind, tmp_path):
    params, objectives = SURE[trainer]
    y = (X[:, 0] > 0).astype("int64") if kind == "two" else np.digitize(X[:, 0], [-0.5, 0.5]).astype("int64")
    y[380:] = (y[380:] + 1) % len(CLASSES[kind])  # of the test split
    dataset = make_dataset({"x": X, "y": y}, np.arange(400), classes=CLASSES[kind])
    keys = {"params": {**params, "objective": objectives[kind]}, "num_boost_round": 60}
    channel = fit(trainer, tmp_path, dataset, **keys)
    columns = dataset.splits["test"].columns
    found = compared(
        boosting_runs.load(trainer, tmp_path, dataset, **keys),
        dataset.info,
        RawChunk(columns["x"], columns["y"], {}, None, None),
    )
    assert metrics_of(dataset.info, [found])["loss"] == pytest.approx(channel.metrics["test/loss"], rel=1e-4)


def test_several_quantiles_are_predictions_and_are_evaluated(tmp_path):
    dataset = dataset_of("number")
    keys = {"params": {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}, "num_boost_round": 20}
    channel = fit("xgboost", tmp_path, dataset, **keys)
    predictor, columns = boosting_runs.load("xgboost", tmp_path, dataset, **keys), dataset.splits["test"].columns
    chunk = RawChunk(columns["x"], columns["y"], {"id": np.arange(80)}, None, None)
    table = prediction_table(predictor, dataset.info, chunk)
    assert table.column_names == ["id", "prediction_q0.1", "prediction_q0.5", "prediction_q0.9"]
    np.testing.assert_array_equal(np.stack(table.columns[1:], axis=1), predictor.predict(columns["x"]))
    found = metrics_of(dataset.info, [compared(predictor, dataset.info, chunk)])
    assert found["quantile"] == pytest.approx(channel.metrics["test/quantile"], rel=1e-5)
    covered = [found[f"coverage_q{at}"] for at in (0.1, 0.5, 0.9)]
    assert covered == sorted(covered)
    assert covered[0] < 0.4 < covered[2]


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("kind", ["two", "three"])
def test_an_objective_of_ones_own_reports_the_loss_of_the_probabilities_that_it_predicts(trainer, kind, tmp_path):
    dataset = dataset_of(kind)
    keys = {"objective_function": f"{__name__}:{trainer}_of_{kind}", "num_boost_round": 10}
    channel = fit(trainer, tmp_path, dataset, allow=(__name__,), **keys)
    columns = dataset.splits["test"].columns
    probabilities = boosting_runs.load(trainer, tmp_path, dataset, **keys).predict(columns["x"])
    loss = -np.log(probabilities[np.arange(80), columns["y"]]).mean()
    assert channel.metrics["test/loss"] == pytest.approx(loss, rel=1e-5)
    assert channel.metrics["test/accuracy"] == pytest.approx((probabilities.argmax(1) == columns["y"]).mean())
    assert not {"test/mse", "test/rmse"} & set(channel.metrics)


def xgboost_of_two(margins, matrix):
    probability = 1 / (1 + np.exp(-margins))
    return probability - matrix.get_label(), probability * (1 - probability)


def xgboost_of_three(margins, matrix):
    return softmax_gradient(margins, matrix.get_label())


def lightgbm_of_two(margins, data):
    return xgboost_of_two(margins, data)


def lightgbm_of_three(margins, data):
    return softmax_gradient(margins, data.get_label())


def softmax_gradient(margins, y):
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    return shares - np.eye(3)[y.astype(int)], 2 * shares * (1 - shares)


@pytest.mark.parametrize("label", [np.inf, -np.inf, np.nan, 1e300])
def test_a_label_that_xgboost_takes_for_infinite_is_an_error_that_names_it(label):
    dataset = dataset_of("number")
    y = dataset.splits["train"].columns["y"].astype("float64")
    y[3] = label
    dataset.splits["train"].columns["y"] = y
    conf = RtrainConf(trainer=confs()["xgboost"](), run=RunConf(name="test"))
    with pytest.raises(ConfigError, match=r"dataset\.label.*split 'train'"):
        load_trainer("xgboost").check(make_job(conf, dataset, "xgboost"))


def test_what_xgboost_finds_wrong_while_it_trains_is_one_line(tmp_path):
    with pytest.raises(TrainingError) as caught:
        fit("xgboost", tmp_path, dataset_of("number"), params={"objective": "count:poisson"})
    assert "label must be non-negative" in caught.value.message
    assert "\n" not in caught.value.message
