"""Sweeps over boosted trees: the model that is kept holds all rounds before it, whatever one of those has reported."""

import shutil

import pytest
from tiny_sweeps import TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.runs.events import events_file, read_events
from rtrain.runs.run import Run
from rtrain.sweeps.record.sweep_record import read_sweep

pytestmark = pytest.mark.usefixtures("tiny")
MONITORED = {"xgboost": "test/mlogloss", "lightgbm": "test/multi_logloss"}
STOPS = "trainer.early_stopping={patience: 5}"
WAYS = {
    "by the metric that is monitored": ["sweep.metric=MONITORED"],
    "by none, which takes that one": ["sweep.metric=null"],
    "by another one": ["sweep.metric=test/loss"],
    "by one that the checkpoint has as well": ["sweep.metric=test/loss", "run.checkpoint.best.monitor=test/loss"],
    "by one, and checkpoints by another": ["sweep.metric=test/loss", "run.checkpoint.best.monitor=test/accuracy"],
    "by several": ["sweep=optuna", "sweep.num_trials=3", "sweep.metric=[test/loss,test/accuracy]"],
    "with early stopping": [STOPS, "sweep.metric=MONITORED"],
    "with early stopping by another one": [STOPS, "sweep.metric=test/loss"],
    "by several, with early stopping": [
        *(STOPS, "sweep=optuna", "sweep.num_trials=3", "sweep.metric=[test/loss,test/accuracy]")
    ],
}


def judged(trainer, way, depths="2,6"):
    words = [word.replace("MONITORED", MONITORED[trainer]) for word in way]
    words += [f"trainer={trainer}", "trainer.num_boost_round=60", f"trainer.params.max_depth={depths}"]
    return swept([*TINY[:-1], *words])


def kept(folder, goals):
    """Return what a trial has reported of the rounds that its model predicts with."""
    rounds = Run.load(folder).manifest.best["epoch"]
    reported = next(one.metrics for one in read_events(events_file(folder)) if one.epoch == rounds)
    return [reported[goal["metric"]] for goal in goals]


def is_judged_by_what_is_kept(record, folder):
    """Check each trial; return whether it made a difference for any."""
    values = {one["name"]: one["values"] for one in record["trials"]}
    assert values == {name: pytest.approx(kept(folder / name, record["goals"])) for name in values}
    goal, makes_difference = record["goals"][0], False
    for name, (first, *_) in values.items():
        reported = [one.metrics[goal["metric"]] for one in read_events(events_file(folder / name))]
        makes_difference |= (min if goal["mode"] == "min" else max)(reported) != pytest.approx(first)
    return makes_difference


@pytest.mark.parametrize("trainer", [*MONITORED])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_trial_is_judged_by_the_model_that_is_kept_also_when_the_sweep_is_resumed(trainer, way):
    record, folder = judged(trainer, way)
    assert is_judged_by_what_is_kept(record, folder) or STOPS in way, "else it makes no difference"
    rtrain(["resume", str(folder)])
    again = read_sweep(folder)
    assert [one["values"] for one in again["trials"]] == [one["values"] for one in record["trials"]]
    assert again["best"] == record["best"]


@pytest.mark.parametrize("trainer", [*MONITORED])
def test_trials_that_are_judged_by_another_metric_later_are_so_by_the_model_that_is_kept(trainer):
    _, folder = judged(trainer, ["sweep.metric=MONITORED"])
    rtrain(["resume", str(folder), "sweep.metric=test/loss"])
    assert read_sweep(folder)["goals"][0]["metric"] == "test/loss"
    assert is_judged_by_what_is_kept(read_sweep(folder), folder)


@pytest.mark.parametrize("trainer", [*MONITORED])
def test_the_order_of_trials_decides_nothing(trainer):
    found = []
    for depths in ("2,6", "6,2"):
        record, _ = judged(trainer, ["sweep.metric=test/loss"], depths)
        found.append({one["name"].partition("-")[2]: one["values"] for one in record["trials"]})
        shutil.rmtree("runs")
    assert found[0] == found[1]


@pytest.mark.parametrize(("way", "is_chosen"), [([], False), ([STOPS], True)], ids=["all rounds", "early stopping"])
def test_the_summary_names_the_metric_of_the_checkpoint_where_it_chooses_rounds(way, is_chosen, capsys):
    judged("xgboost", [*way, "sweep.metric=test/accuracy"])
    assert ("run.checkpoint.best.monitor=test/accuracy" in capsys.readouterr().out) == is_chosen
