"""Boosted trees whose deciding metric is no finite number end with the cause, and those that learn nothing say so."""

import logging
import math

import boosting_runs
import numpy as np
import pytest
from boosting_runs import make_dataset

from rtrain.config.run_conf import FailureConf, RunConf
from rtrain.config.schema import RtrainConf
from rtrain.config.targets.builder import Builder
from rtrain.runs.checkpoints import all_checkpoints
from rtrain.testing.workers import RecordingChannel, make_job, make_worker
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.loops.not_finite import NotFiniteError
from rtrain.trainers.registry import confs, load_trainer

TRAINERS = ("xgboost", "lightgbm")
QUIET = {"xgboost": {"disable_default_eval_metric": True}, "lightgbm": {"metric": "None"}}


def dataset(scale=1.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    y = (x[:, 0] + x[:, 1] ** 2) * scale
    return make_dataset({"x": x.astype("float32"), "y": y.astype("float32")}, np.arange(400))


def fit(trainer, folder, failure, value, best=None, channel=None, calls_before=0, **more):
    """Train with a metric that is ``value`` from the fourth round on, or in the first rounds."""
    channel = channel or RecordingChannel()
    keys = {"params": QUIET[trainer], "metric_functions": [f"{__name__}:{trainer}_{value}"], "num_boost_round": 12}
    conf = confs()[trainer](**keys, **more)
    calls[:] = [1] * calls_before
    worker = make_worker(
        folder,
        conf,
        dataset(),
        channel=channel,
        checkpoint={"every_steps": 1, "keep": 99, "best": best or {"mode": "min"}},
        failure=FailureConf(nan_loss=failure),
    )
    worker.builder = Builder((__name__,))
    load_trainer(trainer).train_loop(conf)(worker)
    return channel


calls = []


def _value(number):
    calls.append(1)
    return number if len(calls) >= 4 else 1.0 / len(calls)


def xgboost_nan(predictions, matrix):
    return "odd", _value(math.nan)


def xgboost_inf(predictions, matrix):
    return "odd", _value(math.inf)


def lightgbm_nan(predictions, data):
    return "odd", _value(math.nan), False


def lightgbm_inf(predictions, data):
    return "odd", _value(math.inf), False


def _late(number):
    calls.append(1)
    return math.nan if len(calls) <= number else abs(len(calls) - number - 3)


def xgboost_late(predictions, matrix):
    return "odd", _late(2)


def lightgbm_late(predictions, data):
    return "odd", _late(2), False


def xgboost_never(predictions, matrix):
    return "odd", _late(99)


def lightgbm_never(predictions, data):
    return "odd", _late(99), False


DECIDES = {
    "nothing": {},
    "when to stop": {"early_stopping": EarlyStoppingConf(patience=3)},
    "which is best": {"best": {"monitor": "test/odd", "mode": "min"}},
}


@pytest.mark.parametrize("decides", DECIDES)
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_metric_that_has_no_value_in_the_first_rounds_decides_from_its_first_value_on(trainer, decides, tmp_path):
    channel = fit(trainer, tmp_path, "raise", "late", **DECIDES[decides])
    told = channel.notices
    assert sum("test/odd is nan in the first round" in one for one in told) == 1
    assert len(channel.events) == (5 + 3 if decides == "when to stop" else 12)
    assert channel.model_facts[-1]["best_round"] == 5
    scores = [one["score"] for one in channel.checkpoints]
    assert scores[:2] == [None, None]
    assert scores[4]["value"] == 0


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_run_that_is_interrupted_before_a_metric_has_a_value_goes_on_to_the_same_end(trainer, tmp_path):
    more = {"early_stopping": EarlyStoppingConf(patience=3), "folder": tmp_path}
    fit(trainer, failure="raise", value="late", channel=RecordingChannel(stop_after=1), **more)
    channel = fit(trainer, failure="raise", value="late", calls_before=1, **more)
    assert [one.step for one in channel.events] == list(range(2, 9))
    assert channel.model_facts[-1]["best_round"] == 5


@pytest.mark.parametrize(("decides", "last"), [("nothing", 10), ("when to stop", 3), ("which is best", 10)])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_metric_that_never_has_a_value_fails_the_run_after_some_rounds(trainer, decides, last, tmp_path):
    with pytest.raises(NotFiniteError, match=f"test/odd of round {last} is nan, not a finite number"):
        fit(trainer, tmp_path, "raise", "never", **DECIDES[decides])


@pytest.mark.parametrize(
    "more", [{}, {"early_stopping": EarlyStoppingConf(patience=3)}], ids=["all rounds", "stopping early"]
)
@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_deciding_metric_that_is_not_finite_fails_the_run_or_ends_it_with_the_checkpoint_before(
    trainer, value, more, tmp_path
):
    with pytest.raises(NotFiniteError, match=f"test/odd of round 4 is {value}, not a finite number"):
        fit(trainer, tmp_path / "raise", "raise", value, **more)
    channel = fit(trainer, tmp_path / "stop", "stop", value, **more)
    assert channel.end_reasons == [f"test/odd of round 4 is {value}, not a finite number."]
    for folder in ("raise", "stop"):
        assert [one.name for one in all_checkpoints(tmp_path / folder)][-1] == "epoch-0003-step-00000003"


UNDEFINED = {"xgboost": {"eval_metric": ["rmse", "rmsle"]}, "lightgbm": {"metric": ["l2"]}}


@pytest.mark.parametrize("decides", [False, True])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_metric_that_was_never_finite_is_noted_where_it_decides_nothing(trainer, decides, tmp_path):
    calls[:] = [1] * 4
    own = {"metric_functions": [f"{__name__}:{trainer}_nan"]} if trainer == "lightgbm" else {}
    keys = {"params": UNDEFINED[trainer], "num_boost_round": 12, **own}
    name = "test/odd" if own else "test/rmsle"
    best = {"best": {"monitor": name if decides else None, "mode": "min"}}
    if decides:
        with pytest.raises(NotFiniteError, match=f"{name} of round 10 is"):
            boosting_runs.fit(trainer, tmp_path, dataset(), checkpoint=best, allow=(__name__,), **keys)
        return
    channel = boosting_runs.fit(trainer, tmp_path, dataset(), checkpoint=best, allow=(__name__,), **keys)
    told = channel.notices
    assert [name in one and "first round" in one for one in told] == ([True] if trainer == "xgboost" else [])
    assert len(channel.events) == 12


@pytest.mark.parametrize("scale", [1e-15, 1e-12, 1e-6, 1e-4, 1e-2, 1.0, 1e9, 1e18, 1e20, 1e30])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_labels_of_any_size_are_learned_or_the_user_is_told(trainer, scale, tmp_path, caplog):
    data = dataset(scale)
    conf = RtrainConf(trainer=confs()[trainer](), run=RunConf(name="test"))
    with caplog.at_level(logging.WARNING):
        load_trainer(trainer).check(make_job(conf, data, trainer))
    try:
        channel = boosting_runs.fit(trainer, tmp_path, data, num_boost_round=40)
    except NotFiniteError:
        assert scale >= 1e20
        return
    rows = data.splits["test"].columns
    found, y = boosting_runs.load(trainer, tmp_path, data).predict(rows["x"]) / scale, rows["y"] / scale
    learned = 1 - np.square(found - y).mean() / y.var() > 0.8
    assert learned != any("labels differ so little" in one for one in caplog.messages)
    told = any("nothing was learned" in one for one in channel.notices)
    assert told == (not learned and scale < 1e-5)


@pytest.mark.parametrize(
    ("trainer", "params"), [("xgboost", {"min_child_weight": 1e9}), ("lightgbm", {"min_data_in_leaf": 1000})]
)
def test_limits_that_let_nothing_be_split_are_told(trainer, params, tmp_path):
    channel = boosting_runs.fit(trainer, tmp_path, dataset(), params=params, num_boost_round=5)
    assert ["nothing was learned in 5 rounds" in one for one in channel.notices] == [True]
