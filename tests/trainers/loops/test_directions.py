"""Which way metrics get better: as the libraries say it, and where nobody says it the user is asked."""

import inspect
import re
from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest
import torchmetrics
import xgboost
from torchmetrics import classification

import rtrain
from rtrain.config.run_conf import BestConf, RunConf, StopConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import ConfigError
from rtrain.sweeps.factory import goals_of
from rtrain.trainers.lightgbm.metrics import MODES as OF_LIGHTGBM
from rtrain.trainers.loops.directions import Directions, check_directions, known_direction, nearest_metric
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.monitor import Monitor, StopConditions
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.torch.losses.metrics import direction_of
from rtrain.trainers.xgboost.metrics import MODES as OF_XGBOOST

LOSSES = (
    *("rmsle", "nll", "wer", "cer", "brier", "ece", "fid", "crps", "bpc", "hinge", "expectile", "log_cosh", "kldiv"),
    *("kl_divergence", "cross_entropy_lambda"),
)
"""Metrics that go down, whose names hold none of the usual words."""
UNKNOWN = (
    "mean_error",
    "mean_reward",
    "total_loss_gain",
    "max_loss_ratio",
    "score",
    "lossless_f1",
    "my_loss_ratio",
    "error_free",
    "mse_gain",
    "x",
    "temperature",
)


def judged(directions, name):
    """Return how each place that judges by a metric takes it: None where it refuses to."""
    best = BestConf(monitor=f"val/{name}")
    places = {"best": Monitor.of(best, None, directions).mode}
    early = EarlyStoppingConf(monitor=f"val/{name}")
    try:
        places["early stopping"] = Monitor("val/loss", "min").stopping(early, directions).mode
    except ConfigError:
        places["early stopping"] = None
    goals = StopConditions(StopConf(target={f"val/{name}": 1.0}), directions)
    below, above = (bool(goals.reached({f"val/{name}": value})) for value in (0.5, 1.5))
    places["target"] = {(True, False): "min", (False, True): "max", (False, False): None}[below, above]
    return places


def sweep_mode(trainer, metric, conf=None):
    """Return the direction that a sweep takes for a metric of a trainer."""
    conf = conf or SimpleNamespace(metric_functions=[], metrics={}, cross_validation=None, train_loop=None)
    return goals_of(SimpleNamespace(metric=metric, mode="auto", scheduler=None), probe_of(trainer, conf), lambda: None)[
        0
    ].mode


def probe_of(trainer, conf=None):
    """Return what the trials of a sweep have in common."""
    run = SimpleNamespace(checkpoint=SimpleNamespace(best=BestConf()))
    return SimpleNamespace(
        conf=SimpleNamespace(run=run, trainer=conf), resolved={"trainer": {"type": trainer}}, builder=Builder()
    )


@pytest.mark.parametrize("name", OF_XGBOOST)
@pytest.mark.parametrize("suffix", ["", "@3", "@0.7"])
def test_every_metric_of_xgboost_goes_the_way_that_xgboost_takes(name, suffix):
    stopper = xgboost.callback.EarlyStopping(rounds=1)
    stopper._update_rounds(score=1.0, name="val", metric=name, model=SimpleNamespace(set_attr=lambda **_: 0), epoch=0)
    mode = "max" if stopper.maximize else "min"
    if name == "interval-regression-accuracy":
        mode = "max"  # XGBoost minimises this one by mistake
    directions = Directions(own=OF_XGBOOST)
    assert set(judged(directions, f"{name}{suffix}").values()) == {mode}
    assert sweep_mode("xgboost", f"val/{name}{suffix}") == mode


@pytest.mark.parametrize("name", sorted({*OF_XGBOOST} - {"expectile"}))  # which is that of later versions
def test_what_counts_as_a_metric_of_xgboost_is_one(name):
    rows = xgboost.DMatrix(np.zeros((2, 1)), label=[0, 1])
    booster = xgboost.Booster({"verbosity": 0, "eval_metric": f"{name}@1.5" if "tweedie" in name else name}, [rows])
    said = ""
    try:
        booster.eval(rows)
    except xgboost.core.XGBoostError as error:  # most ask for labels of their own kind
        said = str(error)
    assert "Unknown metric" not in said


@pytest.mark.parametrize("name", OF_LIGHTGBM)
def test_every_metric_of_lightgbm_goes_the_way_that_lightgbm_takes(name):
    many, ranked = name.startswith(("multi", "auc_mu")), name in ("ndcg", "map")
    params = {"objective": "multiclass", "num_class": 3} if many else {"objective": "regression"}
    params = {"objective": "lambdarank"} if ranked else params
    labels = np.tile([0, 1, 2] if many else [0, 1, 1], 10)
    rows = lightgbm.Dataset(np.zeros((30, 1)), label=labels, group=[30] if ranked else None)
    positive = name in ("gamma", "gamma_deviance")
    if positive:
        rows.label = labels + 1
    found = lightgbm.Booster({**params, "metric": name, "verbosity": -1}, rows).eval_train()
    assert found
    for _, reported_name, _, larger, *_ in found:
        mode = "max" if larger or name == "r2" else "min"  # a larger r2 is better, whatever LightGBM says
        assert set(judged(Directions(own=OF_LIGHTGBM), reported_name).values()) == {mode}
        assert sweep_mode("lightgbm", f"val/{reported_name}") == mode


CLASSES = {
    (module.__name__, name): kind
    for module in (torchmetrics, classification)
    for name in module.__all__
    if inspect.isclass(kind := getattr(module, name)) and issubclass(kind, torchmetrics.Metric)
}


@pytest.mark.parametrize("kind", CLASSES.values(), ids=map(".".join, CLASSES))
def test_every_class_of_torchmetrics_goes_the_way_that_it_says(kind):
    says = kind.higher_is_better
    found = direction_of(kind)
    if isinstance(says, bool):
        assert found == ("max" if says else "min")
    elif found is not None:  # it makes an object of the class of a task
        made = {
            getattr(classification, f"{task}{kind.__name__}", None) for task in ("Binary", "Multiclass", "Multilabel")
        }
        said = {one.higher_is_better for one in made if one is not None} - {None}
        assert said == {found == "max"}


@pytest.mark.parametrize(
    "target", ["torchmetrics.F1Score", "torchmetrics.HammingDistance", "torchmetrics.ConfusionMatrix"]
)
def test_metrics_of_the_config_have_the_direction_of_their_class_whatever_they_are_called(target):
    node = {"_target_": target, "task": "multiclass", "num_classes": "auto"}
    found = load_trainer("torch").directions(SimpleNamespace(train_loop=None, metrics={"x": node}), Builder())
    assert found.of("val/x") == {"F1Score": "max", "HammingDistance": "min"}.get(target.rpartition(".")[2])


@pytest.mark.parametrize("kind", CLASSES.values(), ids=map(".".join, CLASSES))
@pytest.mark.parametrize("name", ["mse", "accuracy", "x"])
def test_a_name_decides_nothing_for_a_class_of_torchmetrics(kind, name):
    node = {"_target_": f"{kind.__module__}.{kind.__qualname__}"}
    found = load_trainer("torch").directions(SimpleNamespace(train_loop=None, metrics={name: node}), Builder())
    assert {found.of(f"val/{name}"), *judged(found, name).values()} == {direction_of(kind)}


@pytest.mark.parametrize("name", ["mse", "accuracy"])
def test_a_name_decides_nothing_for_a_metric_of_keras(name):
    for target, mode in (("Mean", None), ("AUC", "max"), ("MeanAbsoluteError", "min")):
        conf = SimpleNamespace(metrics={name: {"_target_": f"keras.metrics.{target}"}})
        assert load_trainer("tensorflow").directions(conf, Builder()).of(f"val/{name}") == mode


@pytest.mark.parametrize(
    ("target", "mode"), [("AUC", "max"), ("MeanAbsoluteError", "min"), ("Mean", None), ("F1Score", "max")]
)
def test_metrics_of_keras_have_the_direction_that_keras_gives_them(target, mode):
    node = {"_target_": f"keras.metrics.{target}"}
    conf = SimpleNamespace(metrics={"x": node})
    assert load_trainer("tensorflow").directions(conf, Builder()).of("val/x") == mode


def test_scores_of_scikit_learn_are_better_the_larger_they_are():
    conf = SimpleNamespace(cross_validation=SimpleNamespace(scoring=["neg_log_loss"]))
    assert sweep_mode("sklearn", "cv/neg_log_loss", conf) == "max"


@pytest.mark.parametrize("name", LOSSES)
def test_no_loss_is_maximised(name):
    for written in (f"val/{name}", f"val_{name}", name, f"train/epoch_{name}"):
        assert known_direction(written) in ("min", None)
    assert set(judged(Directions(), name).values()) <= {"min", None}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_metric_that_nobody_knows_is_refused_until_the_config_says_its_direction(name):
    assert set(judged(Directions(), name).values()) == {None}
    metric = f"val/{name}"
    early = SimpleNamespace(early_stopping=EarlyStoppingConf(monitor=metric))
    cases = {
        "run.checkpoint.best.mode": (run_conf(best={"monitor": metric}), None),
        "trainer.early_stopping.mode": (run_conf(), early),
        "run.stop.target": (run_conf(target={metric: 1.0}), None),
    }
    for key, (run, trainer) in cases.items():
        with pytest.raises(ConfigError, match=key):
            check_directions(run, trainer, Directions())
    with pytest.raises(ConfigError, match=r"sweep\.mode"):
        sweep_mode("torch", metric)
    said = SimpleNamespace(early_stopping=EarlyStoppingConf(monitor=metric, mode="max"))
    check_directions(run_conf(target={metric: 1.0}), said, Directions())
    check_directions(run_conf(best={"monitor": metric, "mode": "min"}, target={metric: 1.0}), early, Directions())


def run_conf(best=(), target=()):
    run = RunConf(name="test", stop=StopConf(target=dict(target)))
    run.checkpoint.best = BestConf(**dict(best))
    return run


NAMED = "val/mine"
MODES = ("auto", "min", "max")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("monitor", [None, NAMED, "val/loss"])
@pytest.mark.parametrize("early_mode", MODES)
@pytest.mark.parametrize("early_monitor", [None, NAMED, "val/loss"])
def test_a_mode_that_contradicts_what_is_known_is_refused(mode, monitor, early_mode, early_monitor):
    best, default = BestConf(monitor=monitor, mode=mode), "val/accuracy"
    conf = SimpleNamespace(early_stopping=EarlyStoppingConf(monitor=early_monitor, mode=early_mode))
    watched, known, wrong = monitor or early_monitor or default, {"val/loss": "min", "val/accuracy": "max"}, None
    if mode != "auto" and monitor is None and known.get(watched, mode) != mode:
        wrong = "run.checkpoint.best.mode"
    elif early_mode != "auto":
        if mode != "auto":
            known[watched] = mode
        name = early_monitor or watched
        says_otherwise = early_monitor is None or (name == watched and mode != "auto")
        if says_otherwise and known.get(name, early_mode) != early_mode:
            wrong = "trainer.early_stopping.mode"
    if wrong is None:
        Monitor.of(best, conf, Directions(), default)
        return
    with pytest.raises(ConfigError, match=re.escape(wrong)):
        Monitor.of(best, conf, Directions(), default)


CONTRADICTIONS = {
    "mlp": "run.checkpoint.best.mode=min",
    "lightning": "run.checkpoint.best.mode=max",
    "jax": "trainer.early_stopping={mode: min}",
    "keras": "run.checkpoint.best.mode=min",
    "transformers": "trainer.early_stopping={mode: min}",
    "sklearn": "run.checkpoint.best.mode=min",
}


@pytest.mark.parametrize("config", CONTRADICTIONS)
def test_a_mode_against_the_trainers_own_choice_is_refused_before_anything_is_written(config, tmp_path):
    words = ["num_workers=0", f"run.root_dir={tmp_path}", CONTRADICTIONS[config]]
    with pytest.raises(ConfigError, match=r"a (smaller|larger) val/(loss|accuracy) is better"):
        rtrain.fit(config, words)
    assert not list(tmp_path.iterdir())


def test_a_mode_of_a_sweep_belongs_to_a_metric():
    with pytest.raises(ConfigError, match=r"sweep\.mode=max"):
        goals_of(SimpleNamespace(metric=None, mode="max", scheduler=None), probe_of("torch"), lambda: None)


@pytest.mark.parametrize("config", ["xgboost", "lightgbm", "lightning"])
@pytest.mark.parametrize("key", ["run.stop.target={val/lossless_f1: 1}", "run.checkpoint.best.monitor=val/lossless_f1"])
def test_a_config_that_judges_by_an_unknown_metric_is_refused_before_anything_is_written(config, key, tmp_path):
    with pytest.raises(ConfigError, match=r"run\.stop\.target|run\.checkpoint\.best\.mo"):
        rtrain.fit(config, ["num_workers=0", f"run.root_dir={tmp_path}", key])
    assert not list(tmp_path.iterdir())


def test_the_metric_of_early_stopping_chooses_the_best_checkpoint():
    early = EarlyStoppingConf(monitor="val/mine", mode="max")
    conf = SimpleNamespace(early_stopping=early)
    directions = Directions().configured(BestConf(), conf)
    assert Monitor.of(BestConf(), conf, directions, "val/loss") == Monitor("val/mine", "max")
    assert Monitor.of(BestConf(monitor="val/f1"), conf, directions, "val/loss") == Monitor("val/f1", "max")
    assert Monitor.of(BestConf(mode="max"), conf, directions, "val/loss") == Monitor("val/mine", "max")


def test_a_default_monitor_that_nobody_knows_fails_no_run():
    monitor = Monitor.of(BestConf(), None, Directions(), "val/mine")
    assert monitor.score({"val/mine": 1.0}) is None
    assert not monitor.improves(1.0, None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("accuracy", "val/accuracy"),
        ("acc", "val/accuracy"),
        ("val_loss", "val/loss"),
        ("validation_loss", "val/loss"),
        ("train_loss", "train/loss"),
        ("test/accuracy", "val/accuracy"),
        ("eval_acuracy", "val/accuracy"),
        ("val/los", "val/loss"),
        ("f1", None),
    ],
)
def test_a_metric_that_is_not_reported_is_found_by_its_last_part(name, meant):
    assert nearest_metric(name, ["val/loss", "val/accuracy", "train/loss", "train/epoch_loss"]) == meant
