"""What a person sees of a sweep."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from rtrain.cli.app import run as rtrain
from rtrain.displays.sweep_lines import _failures, end_lines, short_names, trial_line
from rtrain.displays.sweep_live import LiveSweepDisplay
from rtrain.searches.base import Objective
from rtrain.sweeps.record.sweep_record import SweepRecord
from rtrain.sweeps.record.trial import Trial


def a_trial(number, **facts):
    given = {"number": number, "point": (str(number),), "overrides": [f"++trainer.params.eta={number}"]}
    return Trial(**given, name=f"00{number}-abc", config_hash="x", **facts)


@pytest.fixture
def record(tmp_path):
    found = SweepRecord(tmp_path, {"search": "grid", "axes": []})
    found.goals = [Objective(metric="val/loss", mode="min")]
    found.trials = [
        a_trial(0, status="succeeded", values=[0.5], seconds=3.0, epoch=4),
        a_trial(1, status="running", values=[0.25], epoch=2, max_epochs=4),
        a_trial(2, status="failed", error={"type": "ValueError", "message": "no luck\ntoday"}),
        a_trial(3, lacks_copy=True),
    ]
    return found


def test_the_live_table_shows_what_trains_and_what_is_best(record):
    out = io.StringIO()
    display = LiveSweepDisplay(Console(file=out, width=120))
    display.stage("planning")
    display.sweep_started(record, 4)
    display.trial_changed(record.trials[0])
    display._console.print(display._render())
    shown = out.getvalue()
    assert "000-abc  succeeded  eta=0  val/loss 0.5" in shown
    assert "001-abc  eta=1       2/4    val/loss 0.25" in shown
    assert "2 of 4 ended  0:00 so far  best val/loss 0.25 (001-abc)" in shown
    display.sweep_ended(record)
    assert "failed      002-abc  trainer.params.eta=2\n            ValueError: no luck" in out.getvalue()
    assert "copy        of 003-abc is NOT COMPLETE" in out.getvalue()


def test_the_time_left_is_told_by_what_is_trained_of_each_trial(record, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("rtrain.displays.sweep_live.time.monotonic", lambda: now)
    display = LiveSweepDisplay(Console(file=io.StringIO(), width=120))
    display.sweep_started(record, 6)  # two are over and one is half way, of six
    now += 10
    assert "left" not in display._summary(record)
    record.trials[1].epoch = 3
    assert "0:10 so far  about 2:10 left" in display._summary(record)
    record.trials[1].status = "succeeded"
    now += 3600
    assert "1:00:10 so far  about 6:01:00 left" in display._summary(record)


def test_a_terminal_of_few_lines_shows_the_summary_all_the_same(record):
    out = io.StringIO()
    display = LiveSweepDisplay(Console(file=out, width=60, height=9))
    record.trials += [a_trial(number, status="running") for number in (4, 5, 6)]
    record.trials[1].status = "paused"
    display.sweep_started(record, 7)
    display._console.print(display._render())
    lines = out.getvalue().splitlines()
    lines = lines[[line.split()[0] for line in lines].index("trial") :]
    assert [line.split()[0] for line in lines[1:5]] == ["004-abc", "005-abc", "006-abc", "and"]
    assert lines[5].startswith("2 of 7 ended")


def test_names_are_as_short_as_can_be_told_apart(record):
    record.trials[0].overrides = ["trainer.optimizer.lr=1", "trainer.model.lr=2", "run.seed=3", "seed=4"]
    assert list(short_names(record.trials[:1]).values()) == ["optimizer.lr", "model.lr", "run.seed", "seed"]


@pytest.mark.parametrize(
    ("kind", "message", "told"),
    [
        ("ValueError", "no luck", "ValueError: no luck"),
        ("ValueError", "ValueError: no luck", "ValueError: no luck"),
        ("ValueError", "ValueError on worker 1: no luck", "ValueError on worker 1: no luck"),
    ],
)
def test_what_a_trial_failed_by_is_said_once(record, kind, message, told):
    for one in record.trials:
        one.error = {"type": kind, "message": message} if one.error is not None else None
    assert [line.split("\n")[1].strip() for line in _failures(record)] == [told]


def test_show_tells_failures_and_how_to_go_on(record, capsys):
    record.write()
    assert rtrain(["sweep", "show", str(record.folder)]) == 0
    shown = capsys.readouterr().out
    assert "running, but in no process on this machine" in shown
    assert "ValueError: no luck" in shown
    assert f"to resume: rtrain resume {record.folder}" in shown


def test_a_sweep_that_ends_with_trials_left_says_how_to_go_on(record):
    record.finish("succeeded")  # its time was over
    assert end_lines(record)[-1].startswith("next        rtrain resume")
    record.trials = record.trials[:1]
    assert end_lines(record)[-1].startswith("next        rtrain sweep show")


def test_show_lists_trials_best_first(record, capsys):
    record.finish("failed")
    assert rtrain(["sweep", "show", str(record.folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:7]] == ["001-abc", "000-abc", "002-abc", "003-abc"]
    assert lines[2].split() == ["trial", "status", "val/loss", "epoch", "seconds", "eta"]


def test_values_stand_under_their_names_whatever_the_order_of_a_trials_overrides(record, capsys):
    record.trials[0].overrides = ["a=1", "b=2"]
    record.trials[1].overrides = ["b=3", "a=4"]
    record.trials = record.trials[:2]
    record.finish("succeeded")
    assert rtrain(["sweep", "show", str(record.folder)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:5]]
    assert [row[-2:] for row in rows] == [["a", "b"], ["4", "3"], ["1", "2"]]


def test_a_metric_that_nobody_has_reported_is_told_instead_of_the_best(record, capsys):
    record.trials = [a_trial(0, status="succeeded")]
    record.finish("succeeded")
    assert "best        unknown: no trial has reported val/loss" in end_lines(record)
    assert rtrain(["sweep", "show", str(record.folder)]) == 0
    assert "best: unknown: no trial has reported val/loss" in capsys.readouterr().out


def test_a_sweep_that_looks_for_nothing_says_that_no_trial_is_the_best(record, capsys):
    record.trials, record.goals = [a_trial(0, status="succeeded", values=None)], []
    record.finish("succeeded")
    assert any(line.startswith("best        unknown") and "sweep.metric" in line for line in end_lines(record))
    assert rtrain(["sweep", "show", str(record.folder)]) == 0
    assert "sweep.metric" in capsys.readouterr().out


def test_show_of_something_else_is_an_error(tmp_path, capsys):
    assert rtrain(["sweep", "show", str(tmp_path)]) == 2
    assert f"{tmp_path} is not a sweep" in capsys.readouterr().err
    (tmp_path / "000-abc").mkdir()
    for text in ("[1]", '{"schema_version": 1}', '{"schema_version": 1, "trials": [{"name": "x"}]}'):
        Path(tmp_path / "sweep.json").write_text(text)
        assert rtrain(["sweep", "show", str(tmp_path)]) == 2
        assert "is damaged" in capsys.readouterr().err
    Path(tmp_path / "sweep.json").write_text("{")
    assert rtrain(["sweep", "show", str(tmp_path / "000-abc")]) == 2
    assert f"did you mean: {tmp_path}" in capsys.readouterr().err
    assert rtrain(["sweep", "show", str(tmp_path)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_message_of_any_length_takes_little_of_the_screen(record):
    record.trials[2].error["message"] = record.trials[2].reason = "much " * 20_000
    assert len("\n".join(end_lines(record))) < 2000
    assert len(trial_line(record.trials[2], record)) < 2000
    assert record.trials[2].facts()["error"]["message"] == "much " * 20_000
