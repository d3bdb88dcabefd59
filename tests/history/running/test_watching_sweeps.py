"""A sweep is watched from its ``sweep.json``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from made_runs import make_sweep

from rtrain.cli.app import run
from rtrain.errors import RtrainError
from rtrain.history.opening import watched
from rtrain.history.running.watching import WatchedHere
from rtrain.history.running.watching_sweeps import watch_sweep
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
    assert watch_sweep(WatchedHere(sweep), watcher)
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

    assert watch_sweep(WatchedHere(sweep), watcher, wait)
    changes = [(0, "running"), (1, "planned"), (0, "failed"), (1, "running"), (1, "succeeded")]
    assert watcher.seen == [("started", 2), *changes, ("ended", "failed")]


def test_a_sweep_whose_process_is_gone_could_not_say_how_it_ended(project, capsys):
    sweep, watcher = make_sweep(project / "runs"), Watcher()
    write(sweep, "running", "succeeded", "running")
    assert not watch_sweep(WatchedHere(sweep), watcher)
    assert watcher.seen[-1] == (1, "running")
    assert run(["runs", "attach", str(sweep)]) == 1
    assert f"try: rtrain resume {sweep.relative_to(project)}" in capsys.readouterr().err


def test_a_damaged_record_is_an_error(project):
    sweep = make_sweep(project / "runs")
    (sweep / "sweep.json").write_text("{")
    with pytest.raises(RtrainError, match="damaged"):
        watch_sweep(WatchedHere(sweep), Watcher())


@pytest.fixture
def stored(tmp_path):
    """A sweep in a store, of which one trial is trained by another machine."""
    sweep = make_sweep(tmp_path / "store")
    write(sweep, "running", "running", "planned")
    return sweep


def write_copied(sweep, seconds_ago, trial="000-4d4a7ab0", *, complete=False):
    """Rewrite the manifest of a trial as its machine does every ten seconds."""
    path = sweep / trial / "manifest.json"
    copied_at = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()
    storage = {"url": "", "complete": complete, "copied_at": copied_at}
    path.write_text(json.dumps({**json.loads(path.read_text()), "storage": storage}))


def test_the_copy_of_a_sweep_is_watched_as_long_as_trials_give_signs_of_life(stored):
    watcher = Watcher()
    write_copied(stored, 1)
    steps = [
        lambda: write_copied(stored, 1, complete=True),  # the trial is over before its sweep says so
        lambda: (write(stored, "running", "succeeded", "running"), write_copied(stored, 1, "001-4d4a7ab1")),
        lambda: write(stored, "succeeded", "succeeded", "succeeded"),
    ]
    with watched(f"file://{stored}") as found:
        assert watch_sweep(found, watcher, lambda seconds: steps.pop(0)())
    assert steps == []
    changes = [(0, "running"), (1, "planned"), (0, "succeeded"), (1, "running"), (1, "succeeded")]
    assert watcher.seen == [("started", 2), *changes, ("ended", "succeeded")]


def test_the_copy_of_a_sweep_that_falls_silent_is_no_longer_watched(stored, capsys):
    write_copied(stored, 200)
    assert run(["runs", "attach", f"file://{stored}"]) == 1
    shown = capsys.readouterr()
    assert f"sweeping 2 trials -> file://{stored}" in shown.out
    assert f"try: rtrain resume file://{stored}" in shown.err


def test_the_record_of_a_sweep_is_a_sign_of_life_too(stored):
    path, looks = stored / "sweep.json", []
    path.write_text(json.dumps({**json.loads(path.read_text()), "written_at": datetime.now(UTC).isoformat()}))
    with watched(f"file://{stored}") as found:
        assert watch_sweep(found, Watcher(), lambda seconds: looks.append(write(stored, "failed", "failed", "failed")))
    assert len(looks) == 1


def test_the_copy_of_a_sweep_that_is_over_is_shown_and_left(tmp_path, capsys):
    sweep = make_sweep(tmp_path / "store")
    assert run(["runs", "attach", f"file://{sweep}"]) == 0
    shown = capsys.readouterr().out
    assert "result      succeeded: 2 succeeded" in shown
    command = next(line for line in shown.splitlines() if line.startswith("next")).split()[1:]
    assert command == ["rtrain", "sweep", "show", f"file://{sweep}"]
    assert run(command[1:]) == 0
    assert f"file://{sweep}: succeeded" in capsys.readouterr().out


def test_a_damaged_copy_of_a_sweep_is_an_error(stored, capsys):
    (stored / "sweep.json").write_text('{"schema_version": 1, "trials": []}')
    assert run(["runs", "attach", f"file://{stored}"]) == 2
    assert f"file://{stored}/sweep.json is damaged" in capsys.readouterr().err
