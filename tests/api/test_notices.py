"""What a user should know of a call from Python is a warning, whatever thread it happened in."""

from __future__ import annotations

import threading
import warnings

import pytest

import rtrain
from rtrain.config.calls.call import Call
from rtrain.displays.notebook import WarningObserver, observing

QUICK = ["dataset=digits", "dataset.limit=400", "epochs=1", "num_workers=0"]
HOOKS = """
import time

import rtrain


class Fails(rtrain.Callback):
    on_error = "warn"

    def event(self, event):
        raise ValueError("the chat is away")


class FailsAtTheEnd(rtrain.Callback):
    def ended(self, outcome):
        raise ValueError("the chat is away")


class Hangs(rtrain.Callback):
    def event(self, event):
        time.sleep(3)


class FailsOnWorkers(rtrain.WorkerCallback):
    on_error = "warn"

    def step_end(self, training, batch):
        raise ValueError("the chat is away")
"""
WRONG = {
    "Fails": ("run.callbacks", "the chat is away"),
    "FailsAtTheEnd": ("run.callbacks", "the chat is away"),
    "Hangs": ("run.callbacks", "has not returned for 0.1 seconds"),
    "FailsOnWorkers": ("trainer.callbacks", "the chat is away"),
}


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hooks_of_a_test.py").write_text(HOOKS)


def words(name):
    patience = ["run.loggers_timeout_seconds=0.1"] if name == "Hangs" else []
    return [*QUICK, f"{WRONG[name][0]}=[{{_target_: hooks_of_a_test.{name}}}]", *patience]


@pytest.mark.parametrize("name", WRONG)
def test_a_callback_that_fails_or_hangs_is_a_warning_of_fit(name):
    with pytest.warns(UserWarning, match=WRONG[name][1]) as found:
        assert rtrain.fit("mlp", words(name)).status == "succeeded"
    assert len(found) == 1


def test_so_it_is_of_each_trial_of_a_sweep():
    with pytest.warns(UserWarning, match="the chat is away") as found:
        rtrain.sweep("mlp", [*words("Fails"), "seed=1,2"])
    assert [str(one.message).partition("-")[0] for one in found] == ["000", "001"]


def test_an_ordinary_run_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        rtrain.fit("mlp", QUICK)


@pytest.mark.parametrize("name", WRONG)
def test_a_warning_that_is_an_error_leaves_the_run_whole(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(UserWarning, match=WRONG[name][1]):
            rtrain.fit("mlp", words(name))
    (run,) = rtrain.runs()
    assert run.status == "succeeded"


def test_an_error_of_the_run_counts_more_than_a_warning():
    def fail():
        with observing(None, Call("fit", "mlp")) as observer:
            observer.notice("a note")
            raise ZeroDivisionError

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(ZeroDivisionError):
            fail()


def test_the_text_of_another_thread_is_a_warning_too():
    observer = WarningObserver(Call("fit", "mlp"))
    thread = threading.Thread(target=observer.notice, args=["of a thread"])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        thread.start()
        thread.join()
    assert [str(one.message) for one in found] == ["of a thread"]
