"""A run that another process trains is asked to end."""

from __future__ import annotations

import os
import platform
import signal

import pytest
from made_runs import make_run, make_sweep

from rtrain.errors import ConfigError
from rtrain.history.running.stopping import Asked, stop_run
from rtrain.process.interrupts import stop_on_signals
from rtrain.runs.filesystem.lock import Lock, end_asked, holder, locked, wait_until_free


def test_the_process_that_holds_the_lock_gets_sigterm(project):
    run, sent = make_run(project / "runs"), []
    with locked(run):
        assert holder(run) == (os.getpid(), platform.node())
        assert stop_run(run, lambda *what: sent.append(what)) == [Asked(folder=run, pid=os.getpid(), already=False)]
    assert sent == [(os.getpid(), signal.SIGTERM)]


def test_a_run_that_is_not_running_gets_nothing(project):
    run = make_run(project / "runs")
    (run / ".lock").write_text(f"process {os.getpid()} on {platform.node()}\n")
    assert holder(run) is None
    with pytest.raises(ConfigError, match="has ended already: succeeded"):
        stop_run(run, lambda *_: pytest.fail("a signal was sent"))


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        ("running", "it was killed", "rtrain resume runs/mlp"),
        ("failed", "failed", None),
        ("preempted", "preempted", None),
    ],
)
def test_of_a_run_that_has_ended_the_end_is_named(project, status, said, hint):
    run = make_run(project / "runs", status=status)
    with pytest.raises(ConfigError, match=f"has ended already: {said}") as raised:
        stop_run(run, lambda *_: pytest.fail("a signal was sent"))
    assert (hint is None and raised.value.hint is None) or str(hint) in str(raised.value.hint)


@pytest.mark.parametrize("make", [make_run, make_sweep])
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_ending_gets_no_second_signal_whoever_asked_it(project, make, first):
    folder, sent = make(project / "runs"), []
    with locked(folder) as lock, stop_on_signals() as stop:
        stop.note_by(lock.note_end)
        signal.raise_signal(first)
        assert end_asked(folder) == stop.verdict()
        assert stop_run(folder, lambda *what: sent.append(what))[0].already
        assert holder(folder) == (os.getpid(), platform.node())
    with locked(folder):
        assert not stop_run(folder, lambda *what: sent.append(what))[0].already, "the next process was not asked"
    assert len(sent) == 1


def test_a_run_on_another_machine_is_named_with_its_process(project):
    run = make_run(project / "runs")
    with locked(run):
        (run / ".lock").write_text("process 12 on another-machine\n")
        with pytest.raises(ConfigError, match=r"(?s)another-machine.*kill 12"):
            stop_run(run, lambda *_: pytest.fail("a signal was sent"))


def test_of_a_trial_the_sweep_is_meant(project):
    sweep = make_sweep(project / "runs")
    with locked(sweep), pytest.raises(ConfigError, match="rtrain runs stop runs/mlp-sweep-330826"):
        stop_run(sweep / "000-4d4a7ab0", lambda *_: pytest.fail("a signal was sent"))


def test_a_process_of_another_user_is_an_error(project):
    run = make_run(project / "runs")

    def refuse(pid, number):
        raise PermissionError

    with locked(run), pytest.raises(ConfigError, match="belongs to another user"):
        stop_run(run, refuse)


def test_waiting_ends_when_the_lock_is_free(project):
    run = make_run(project / "runs")
    lock, waits = Lock(run), []
    assert not wait_until_free(run, 0.0)
    assert wait_until_free(run, wait=lambda seconds: waits.append(seconds) or len(waits) < 3 or lock.close())
    assert len(waits) == 3


def test_of_a_sweep_that_was_killed_the_trials_that_still_train_are_stopped(project):
    sweep, sent = make_sweep(project / "runs"), []
    trial = next(path.parent for path in sorted(sweep.glob("*/manifest.json")))
    with locked(trial):
        (asked,) = stop_run(sweep, lambda *what: sent.append(what))
    assert (asked.folder, sent) == (trial, [(os.getpid(), signal.SIGTERM)])
    with pytest.raises(ConfigError, match="has ended already"):
        stop_run(sweep, lambda *_: pytest.fail("a signal was sent"))
