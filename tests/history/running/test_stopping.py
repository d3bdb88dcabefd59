"""A run that another process trains is asked to end."""

from __future__ import annotations

import os
import platform
import signal

import pytest
from made_runs import make_run, make_sweep

from rtrain.errors import ConfigError
from rtrain.history.running.stopping import stop_run, wait_until_free
from rtrain.runs.filesystem.lock import Lock, holder, locked


def test_the_process_that_holds_the_lock_gets_sigterm(project):
    run, sent = make_run(project / "runs"), []
    with locked(run):
        assert holder(run) == (os.getpid(), platform.node())
        assert stop_run(run, lambda *what: sent.append(what)) == os.getpid()
    assert sent == [(os.getpid(), signal.SIGTERM)]


def test_a_run_that_is_not_running_gets_nothing(project):
    run = make_run(project / "runs")
    (run / ".lock").write_text(f"process {os.getpid()} on {platform.node()}\n")
    assert holder(run) is None
    with pytest.raises(ConfigError, match="is not running"):
        stop_run(run, lambda *_: pytest.fail("a signal was sent"))


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
    wait_until_free(run, lambda seconds: waits.append(seconds) or len(waits) < 3 or lock.close())
    assert len(waits) == 3
