"""What a scheduler hears of trials: the same while they train and from their files, when a sweep is resumed."""

import math
from types import SimpleNamespace

import pytest
from made_runs import write_events

from rtrain.runs.events import Event, events_file
from rtrain.schedulers.base import SchedulerConf
from rtrain.searches.base import Objective
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial
from rtrain.sweeps.scheduling import Judge

LOSS = Objective(metric="loss", mode="min")


class Ear:
    """A scheduler that keeps what it hears."""

    conf, longest = SimpleNamespace(unit="epochs"), None

    def __init__(self):
        self.heard = []

    def add(self, trial, point):
        pass

    def hear(self, trial, length, value):
        self.heard.append((trial, length, str(value)))

    def ended(self, trial):
        pass


def _judge(folder):
    record = SweepRecord(folder, {"axes": []})
    record.goals = [LOSS]
    record.trials = [Trial(number=0, point=("1",), overrides=[], name="0", config_hash="", status="succeeded")]
    ear = Ear()
    return Judge(ear, SimpleNamespace(axes=()), record, print), record.trials[0], ear.heard


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.5])
def test_a_report_that_is_not_finite_counts_the_same_when_it_is_read_back(tmp_path, value):
    reports = [{"loss": 0.75}, {"loss": value}, {"other": 1.0}]
    live, trial, heard = _judge(tmp_path)
    for epoch, metrics in enumerate(reports):
        live.hear(trial, epoch, epoch, metrics)
    (tmp_path / "0").mkdir()
    write_events(
        events_file(tmp_path / "0"),
        [Event.at(float(epoch), step=epoch, epoch=epoch, metrics=one) for epoch, one in enumerate(reports)],
    )
    resumed, again, read_back = _judge(tmp_path)
    resumed.remember()
    assert read_back == heard
    assert len(heard) == 2
    assert again.values == trial.values


@pytest.mark.parametrize(("unit", "lengths"), [("epochs", [1, 2]), ("steps", [10, 20])])
def test_lengths_are_counted_as_the_key_says(tmp_path, unit, lengths):
    judge, trial, heard = _judge(tmp_path)
    judge._scheduler.conf = SchedulerConf(unit=unit)
    for epoch in (1, 2):
        judge.hear(trial, 10 * epoch, epoch, {"loss": 1.0})
    assert [length for _, length, _ in heard] == lengths


def test_the_best_of_equal_trials_has_made_its_value_itself(tmp_path):
    record = SweepRecord(tmp_path, {"axes": []})
    record.goals = [Objective(metric="score", mode="max")]
    copies = [[{"step": 8}], [{"step": 4}], [], [{"step": 8}]]
    for number, lineage in enumerate(copies):
        trial = Trial(number=number, point=(), overrides=[], name=f"{number:03d}", config_hash="", lineage=lineage)
        trial.values = [0.5 if number == 2 else 0.8]
        record.trials.append(trial)
    assert record.best.number == 1, "0 and 3 have its checkpoint of step 8"
