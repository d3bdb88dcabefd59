"""The best value that a run of boosted trees shows is that of the model which its best checkpoint predicts with."""

import boosting_runs
import numpy as np
import pytest
from boosting_runs import make_dataset

from rtrain.config.run_conf import CheckpointConf, RunConf
from rtrain.config.schema import RtrainConf
from rtrain.datasets.base import RawChunk
from rtrain.errors import ConfigError
from rtrain.evaluation import compared, metrics_of
from rtrain.runs.checkpoints import best_record, checkpoints_dir
from rtrain.testing.workers import RecordingChannel, make_job
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf
from rtrain.trainers.registry import confs, load_trainer
from rtrain.trainers.trained import LoadedCheckpoint

KINDS = {
    "xgboost": {
        "gbtree": {},
        "dart": {"booster": "dart", "rate_drop": 0.5},
        "gblinear": {"booster": "gblinear"},
        "forest": {"num_parallel_tree": 3, "subsample": 0.5},
        "exact": {"tree_method": "exact"},
    },
    "lightgbm": {
        "gbdt": {},
        "dart": {"boosting": "dart"},
        "rf": {"boost": "rf", "bagging_fraction": 0.7, "bagging_freq": 1},
        "goss": {"data_sample_strategy": "goss"},
        "linear": {"linear_tree": True},
    },
}
CASES = [(trainer, kind) for trainer, kinds in KINDS.items() for kind in kinds]
UNCUT = ("dart", "gblinear")
"""Kinds that change in each round what the rounds before gave."""
KEYS = {"stopping": {"early_stopping": EarlyStoppingConf(patience=5)}, "all rounds": {}, "saved": {}}
MSE = {"xgboost": "rmse", "lightgbm": "l2"}


def dataset():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)).astype("float32")
    y = (x[:, 0] + x[:, 1] ** 2 + rng.normal(size=400)).astype("float32")
    return make_dataset({"x": x, "y": y}, np.arange(400))


def check(trainer, data, keys):
    conf = RtrainConf(trainer=confs()[trainer](**keys), run=RunConf(name="test", checkpoint=CheckpointConf()))
    load_trainer(trainer).check(make_job(conf, data, trainer))


@pytest.mark.parametrize("way", KEYS)
@pytest.mark.parametrize(("trainer", "kind"), CASES)
def test_the_best_checkpoint_gives_the_value_that_is_shown(trainer, kind, way, tmp_path):
    data, keys = dataset(), {"params": {"learning_rate": 0.5, **KINDS[trainer][kind]}, **KEYS[way]}
    if way == "stopping" and kind in UNCUT:
        with pytest.raises(ConfigError, match=r"trainer\.early_stopping: .* can't be kept"):
            check(trainer, data, keys)
        return
    check(trainer, data, keys)
    monitor = {"every_steps": 1, "keep": 99, "best": {"monitor": f"test/{MSE[trainer]}"}}
    cadence = {"checkpoint": monitor} if way == "saved" else {}
    channel = boosting_runs.fit(trainer, tmp_path, data, num_boost_round=30, **keys, **cadence)
    record = best_record(channel.checkpoints)
    folder = checkpoints_dir(tmp_path) / record["name"]
    predictor = load_trainer(trainer).load_predictor(
        LoadedCheckpoint(folder=folder, conf=confs()[trainer](**keys), info=data.info), "cpu"
    )
    rows = data.splits["test"].columns
    found = metrics_of(data.info, [compared(predictor, data.info, RawChunk(rows["x"], rows["y"], {}, None, None))])
    shown = record["score"]["value"] ** (2 if trainer == "xgboost" else 1)
    assert found["mse"] == pytest.approx(shown, rel=1e-4)
    values = [one.metrics["test/mse"] for one in channel.events]
    assert shown == pytest.approx(values[-1] if way == "all rounds" else min(values))


@pytest.mark.parametrize("way", KEYS)
@pytest.mark.parametrize("trainer", KINDS)
def test_users_are_told_of_a_round_that_was_better_than_the_model(trainer, way, tmp_path):
    keys = {"params": {"learning_rate": 0.9}, "num_boost_round": 40, **KEYS[way]}
    cadence = {"every_steps": 1, "best": {"monitor": f"test/{MSE[trainer]}"}} if way == "saved" else {}
    channel = boosting_runs.fit(trainer, tmp_path, dataset(), checkpoint=cadence, **keys)
    best = channel.model_facts[-1]["best_round"]
    told = channel.notices
    assert best < 10
    assert [f"was best in round {best}" in one and "trainer.early_stopping={patience: 10}" in one for one in told] == (
        [True] if way == "all rounds" else []
    )


@pytest.mark.parametrize("trainer", KINDS)
def test_a_run_that_stopped_early_says_so_when_it_is_resumed_and_trains_nothing(trainer, tmp_path):
    keys = {"params": {"learning_rate": 0.5}, "num_boost_round": 90, "early_stopping": EarlyStoppingConf(patience=3)}
    first = boosting_runs.fit(trainer, tmp_path, dataset(), **keys)
    again = boosting_runs.fit(trainer, tmp_path, dataset(), **keys)
    assert again.end_reasons == first.end_reasons != []
    assert not again.events
    assert not again.checkpoints
    assert again.model_facts[-1] == facts_of(first)


def facts_of(channel):
    """Return what a run says of its model; LightGBM's files hold gains with six digits."""
    facts = channel.model_facts[-1]
    importance = {kind: pytest.approx(values, rel=1e-4) for kind, values in facts["feature_importance"].items()}
    return {**facts, "feature_importance": importance}


@pytest.mark.parametrize("trainer", KINDS)
def test_interruptions_do_not_move_the_round_at_which_a_run_stops_early(trainer, tmp_path):
    keys = {"params": {"learning_rate": 0.5}, "num_boost_round": 90, "early_stopping": EarlyStoppingConf(patience=4)}
    whole = boosting_runs.fit(trainer, tmp_path / "whole", dataset(), **keys)
    last, steps = None, []
    for _ in range(30):
        last = boosting_runs.fit(trainer, tmp_path / "parts", dataset(), channel=RecordingChannel(stop_after=1), **keys)
        steps += [one.step for one in last.events]
        if last.end_reasons:
            break
    assert steps == [one.step for one in whole.events]
    assert last.end_reasons == whole.end_reasons
    assert last.model_facts[-1] == facts_of(whole)
