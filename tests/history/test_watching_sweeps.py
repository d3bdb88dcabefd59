"""A sweep is watched from its ``sweep.json``."""

from __future__ import annotations

import json

import pytest
from made_runs import make_sweep

from rtrain.cli.app import run
from rtrain.errors import RtrainError
from rtrain.history.watching_sweeps import watch_sweep
from rtrain.runs.filesystem.lock import Lock


class Watcher:
    def __init__(self):
        self.seen = []

    def sweep_started(self, record, num_trials):
        self.seen.append(("started", num_trials))

    def trial_changed(self, trial):
        self.seen.append((trial.number, trial.status))

    def sweep_ended(self, record):
        self.seen.append(("ended", record.status))


def write(sweep, status, *trials):
    """Rewrite the record of a sweep: its status, and those of its trials."""
    path = sweep / "sweep.json"
    data = json.loads(path.read_text())
    data["status"] = status
    for trial, one in zip(data["trials"], trials, strict=True):
        trial["status"] = one
    path.write_text(json.dumps(data))


def test_a_sweep_that_is_over_is_shown_and_left(project, capsys):
    sweep, watcher = make_sweep(project / "runs"), Watcher()
    assert watch_sweep(sweep, watcher)
    assert watcher.seen == [("started", 2), (0, "succeeded"), (1, "succeeded"), ("ended", "succeeded")]
    assert run(["runs", "attach", "last"]) == 0
    shown = capsys.readouterr().out
    assert "sweeping 2 trials" in shown
    assert "result      succeeded: 2 succeeded" in shown


def test_trials_are_shown_as_they_change_until_the_sweep_is_over(project):
    sweep, watcher = make_sweep(project / "runs"), Watcher()
    write(sweep, "running", "running", "planned")
    lock = Lock(sweep)
    steps = [("running", "running", "planned"), ("running", "failed", "running"), ("failed", "failed", "succeeded")]

    def wait(seconds):
        write(sweep, *steps.pop(0))
        if not steps:
            lock.close()

    assert watch_sweep(sweep, watcher, wait)
    changes = [(0, "running"), (1, "planned"), (0, "failed"), (1, "running"), (1, "succeeded")]
    assert watcher.seen == [("started", 2), *changes, ("ended", "failed")]


def test_a_sweep_whose_process_is_gone_could_not_say_how_it_ended(project, capsys):
    sweep, watcher = make_sweep(project / "runs"), Watcher()
    write(sweep, "running", "succeeded", "running")
    assert not watch_sweep(sweep, watcher)
    assert watcher.seen[-1] == (1, "running")
    assert run(["runs", "attach", str(sweep)]) == 1
    assert f"try: rtrain resume {sweep.relative_to(project)}" in capsys.readouterr().err


def test_a_damaged_record_is_an_error(project):
    sweep = make_sweep(project / "runs")
    (sweep / "sweep.json").write_text("{")
    with pytest.raises(RtrainError, match="damaged"):
        watch_sweep(sweep, Watcher())
