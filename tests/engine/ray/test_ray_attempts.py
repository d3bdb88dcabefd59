"""What the driver answers when a controller asks whether to start workers again; without Ray."""

import time
from types import SimpleNamespace

import pytest

from rtrain.config.run_conf import FailureConf, RunConf
from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.engine.ray.attempts import Attempts
from rtrain.process.interrupts import StopRequest
from rtrain.runs.records import (
    AttemptFailedRecord,
    AttemptRecord,
    FailureKind,
    FailureRecord,
    ProgressRecord,
    WorkerFailure,
)


class Recorder:
    def __init__(self, run_dir):
        self.run_dir, self.failures, self.notices, self.ended = run_dir, [], [], []
        self.observer = SimpleNamespace(notice=self.notices.append)

    def accept(self, record):
        if isinstance(record, FailureRecord):
            self.failures.append(record)

    def end_attempt(self, why):
        self.ended.append(why)


class Channel:
    def __init__(self):
        self.answers = []

    def answer(self, question, *, again):
        self.answers.append((question, again))


@pytest.fixture
def parts(tmp_path):
    def make(*, are_there=False, **failure):
        stop, recorder = StopRequest(), Recorder(tmp_path)
        run = RunConf(name="test", failure=FailureConf(**failure))
        conf = RtrainConf(run=run, scaling=ScalingConf(num_workers=2, start_timeout_seconds=0.2))
        return Attempts(recorder, conf, stop, are_there=are_there), recorder, stop, Channel()

    return make


def begin(attempts, step=None):
    attempts.accept(AttemptRecord(num_workers=2, from_step=0))
    if step is not None:
        attempts.accept(ProgressRecord(step=step, epoch=0, steps_per_epoch=None, rows=1))


def fail(attempts, question, message=None):
    """Let worker 1 raise, or die without a word."""
    if message is not None:
        attempts.accept(FailureRecord(rank=1, type="ValueError", message=message, time=1.0))
    kind = FailureKind.WORKER_DIED if message is None else FailureKind.EXCEPTION
    worker = WorkerFailure(rank=1, type="Error", message="", kind=kind)
    ask(attempts, question, FailureKind.EXCEPTION, workers=[worker])


def ask(attempts, question, kind, **facts):
    attempts.accept(AttemptFailedRecord(question=question, kind=kind, message="", **facts))


def no_room(attempts, question):
    ask(attempts, question, FailureKind.NO_WORKERS)


def test_a_worker_that_died_after_progress_starts_again_at_once(parts):
    attempts, recorder, _, channel = parts()
    begin(attempts, step=5)
    fail(attempts, "one")
    attempts.answer(channel)
    assert channel.answers == [("one", True)]
    assert recorder.ended == [
        {"kind": "worker died", "message": "the process of worker 1 exited without an error message", "rank": 1}
    ]
    assert recorder.notices == ["the process of worker 1 exited without an error message; starting again"]


def test_one_that_died_again_before_it_got_further_waits(parts):
    attempts, recorder, _, channel = parts(backoff_seconds=0.4)
    begin(attempts, step=5)
    fail(attempts, "one")
    attempts.answer(channel)
    begin(attempts, step=4)
    fail(attempts, "two")
    attempts.answer(channel)
    assert channel.answers == [("one", True)]
    assert "starting again in 0." in recorder.notices[1]
    time.sleep(0.5)
    attempts.answer(channel)
    assert channel.answers == [("one", True), ("two", True)]


def test_a_step_that_only_the_failure_knows_of_is_progress(parts):
    attempts, _, _, channel = parts()
    begin(attempts)
    failure = FailureRecord(rank=1, type="KeyError", message="'a'", time=1.0, bug=True, step=3)
    attempts.accept(failure)
    fail(attempts, "one")
    attempts.answer(channel)
    assert channel.answers == [("one", True)]
    begin(attempts)
    attempts.accept(failure)
    fail(attempts, "two")
    attempts.answer(channel)
    assert channel.answers == [("one", True), ("two", False)]
    assert "the same error occurred again" in str(attempts.error(RuntimeError()))


def test_the_same_exception_at_the_same_step_ends_the_run_with_its_own_words(parts):
    attempts, recorder, _, channel = parts()
    for question in ("one", "two"):
        begin(attempts, step=5)
        fail(attempts, question, "no such thing")
        attempts.answer(channel)
        time.sleep(0.01)
    assert channel.answers == [("one", True), ("two", False)]
    error = attempts.error(RuntimeError())
    assert error.message == "ValueError on worker 1: no such thing"
    assert error.cause_type == "ValueError"
    assert "Gave up after 2 attempts" in error.hint
    assert not attempts.excused
    assert [one.type for one in recorder.failures] == ["ValueError"]


def test_lost_connections_of_others_are_no_error_of_the_run(parts):
    attempts, recorder, _, channel = parts(max_failures=0)
    begin(attempts, step=5)
    attempts.accept(FailureRecord(rank=0, type="RuntimeError", message="Connection closed by peer", time=1.0))
    fail(attempts, "one")
    attempts.answer(channel)
    assert attempts.error(RuntimeError()).message == "the process of worker 1 exited without an error message"
    assert recorder.failures == []


def test_ctrl_c_ends_a_run_that_waits_to_start_again(parts):
    attempts, _, stop, channel = parts(backoff_seconds=60)
    begin(attempts)
    fail(attempts, "one")
    attempts.answer(channel)
    assert channel.answers == []
    stop.reason = "interrupted"
    attempts.answer(channel)
    assert channel.answers == [("one", False)]
    assert attempts.excused


def test_workers_that_a_signal_to_all_processes_ended_are_no_failure_but_an_exception_is(parts):
    attempts, _, stop, channel = parts()
    stop.reason = "preempted"
    begin(attempts, step=5)
    fail(attempts, "one")
    attempts.answer(channel)
    assert channel.answers == [("one", False)]
    assert attempts.excused
    attempts, _, stop, channel = parts()
    stop.reason = "preempted"
    begin(attempts, step=5)
    fail(attempts, "one", "no such thing")
    attempts.answer(channel)
    assert not attempts.excused


def test_workers_that_never_start_are_told_after_the_start_timeout(parts):
    attempts, _, _, channel = parts()
    no_room(attempts, "one")
    attempts.answer(channel)
    time.sleep(0.3)
    no_room(attempts, "two")
    attempts.answer(channel)
    assert channel.answers == [("one", True), ("two", False)]
    assert "the 2 workers did not start within 0.2 seconds" in str(attempts.error(RuntimeError()))


def test_machines_that_do_not_come_back_are_waited_for_with_a_limit(parts):
    attempts, _, _, channel = parts(wait_seconds=0.5)
    begin(attempts, step=5)
    fail(attempts, "one")
    attempts.answer(channel)
    no_room(attempts, "two")
    attempts.answer(channel)
    time.sleep(0.6)
    no_room(attempts, "three")
    attempts.answer(channel)
    assert channel.answers == [("one", True), ("two", True), ("three", False)]
    assert "resources for 2 workers did not return" in str(attempts.error(RuntimeError()))


def test_another_number_of_workers_is_no_failure(parts):
    attempts, recorder, _, channel = parts(max_failures=0)
    begin(attempts, step=5)
    begin(attempts, step=6)
    attempts.answer(channel)
    assert [one["kind"] for one in recorder.ended] == ["resized"]
    assert channel.answers == []


def test_workers_that_died_while_they_waited_for_the_run_are_started_again_for_nothing(parts):
    attempts, recorder, _, channel = parts(are_there=True, max_failures=0)
    fail(attempts, "one")
    attempts.answer(channel)
    assert channel.answers == [("one", True)]
    begin(attempts)
    fail(attempts, "two")
    attempts.answer(channel)
    assert channel.answers[1:] == [("two", False)], "this one is the run's"
    assert len(recorder.ended) == 1


def test_workers_that_died_when_the_run_was_over_are_started_for_the_next_one(parts):
    attempts, recorder, _, channel = parts(max_failures=0)
    begin(attempts)
    attempts.release(channel)
    assert channel.answers == []
    fail(attempts, "one")
    attempts.release(channel)
    assert channel.answers == [("one", True)]
    assert recorder.ended == []
