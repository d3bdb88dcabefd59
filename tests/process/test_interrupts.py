"""Signals that ask a run to stop: which of them count, and who hears them."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from importlib import import_module

import pytest

from rtrain.process import interrupts
from rtrain.process.interrupts import StopRequest, imports_finished, leave_signals_to_driver, stop_on_signals
from rtrain.sweeps.executors.in_process import TrialStop

OF_THE_SYSTEM = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]
HEARD = {signal.SIGINT: "interrupted", **dict.fromkeys(OF_THE_SYSTEM, "preempted")}


@pytest.fixture
def clock(monkeypatch):
    """The time, which a test sets."""
    now = [100.0]
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def handlers():
    """Put back what the test sets."""
    before = {number: signal.getsignal(number) for number in HEARD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", OF_THE_SYSTEM)
def test_a_signal_that_comes_twice_at_once_is_one(clock, number):
    request = StopRequest()
    request.receive(number)
    request.receive(number)
    assert (request.reason, request.num_signals) == ("preempted", 1)
    clock[0] += 2
    if number != signal.SIGHUP:
        with pytest.raises(KeyboardInterrupt):
            request.receive(number)


@pytest.mark.parametrize("first", sorted(HEARD))
def test_a_terminal_that_is_closed_may_say_so_any_number_of_times(clock, first):
    request = StopRequest()
    request.receive(first)
    for _ in range(3):
        clock[0] += 5
        request.receive(signal.SIGHUP)
    assert request.reason == HEARD[first]
    assert request.num_signals == 1


@pytest.mark.parametrize("make", [StopRequest, lambda: TrialStop(StopRequest())], ids=["run", "trial"])
def test_the_first_signal_counts_while_the_record_is_written_and_none_interrupts_that(make):
    stop = make()
    stop.ending = True
    heard = getattr(stop, "_sweep", stop)
    heard.receive(signal.SIGINT)
    heard.receive(signal.SIGINT)
    assert stop.verdict() == ("interrupted", "stopped by Ctrl-C")
    assert stop.num_signals == 2


def test_a_signal_counts_as_the_first_where_something_else_ends_the_run(clock):
    request = StopRequest()
    request.ask("interrupted", "paused by the scheduler")
    request.receive(signal.SIGINT)
    assert request.verdict() == ("interrupted", "paused by the scheduler")
    with pytest.raises(KeyboardInterrupt):
        request.receive(signal.SIGINT)


def test_two_ctrl_c_end_at_once_however_fast(clock):
    request = StopRequest()
    request.receive(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        request.receive(signal.SIGINT)


def test_ctrl_c_is_a_second_signal_at_any_time(clock):
    request = StopRequest()
    request.receive(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        request.receive(signal.SIGINT)


@pytest.mark.parametrize(("number", "reason"), HEARD.items())
def test_each_signal_is_heard(handlers, number, reason):
    with stop_on_signals() as request:
        signal.raise_signal(number)
        assert request.reason == reason


def test_what_nohup_ignores_stays_ignored(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_on_signals() as request:
        signal.raise_signal(signal.SIGHUP)
        assert request.reason is None
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def as_driver():
    return stop_on_signals()


@contextmanager
def as_worker():
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)  # as in all processes of a cluster of rtrain's own
    leave_signals_to_driver()
    yield


@pytest.mark.parametrize("role", [as_driver, as_worker])
def test_a_fork_is_ended_by_what_its_parent_takes_for_a_request(handlers, role):
    reader, writer = os.pipe()
    with role():
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            os.write(writer, b".")
            while True:
                signal.pause()
        os.read(reader, 1)  # before that, Python forgets what a fork is sent
        os.kill(pid, signal.SIGTERM)
        _, status = os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM


def test_a_worker_lives_through_them_and_can_end_what_it_starts(handlers):
    ended = []

    def end():  # in a thread that is started later, where the loop runs
        process = subprocess.Popen(["sleep", "60"])
        process.terminate()
        ended.append(process.wait())

    with as_worker():
        for number in OF_THE_SYSTEM:
            signal.raise_signal(number)
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
    assert ended == [-signal.SIGTERM]


def test_signals_of_a_cluster_that_is_joined_are_left_alone(handlers):
    before = {number: signal.getsignal(number) for number in HEARD}
    leave_signals_to_driver()
    assert {number: signal.getsignal(number) for number in HEARD} == before


def told(request, monkeypatch, then=lambda: None):
    """Return what is told of a signal in a second of a loop that does not end."""
    monkeypatch.setattr(interrupts, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(interrupts, "SLOW_SECONDS", 0.05)
    lines = []
    with interrupts.telling_of_signals(request, lines.append):
        then()
        threading.Event().wait(0.5)
    return lines


@pytest.mark.parametrize("number", list(HEARD))
def test_a_signal_that_ends_nothing_for_a_while_is_told_once(monkeypatch, number):
    request = StopRequest()
    (line,) = told(request, monkeypatch, lambda: request.receive(number))
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    assert line.startswith(f"{name} was received")
    assert "a second one ends it immediately" in line


def test_nothing_is_told_of_a_signal_that_ends_the_run_or_that_nobody_sent(monkeypatch):
    assert told(StopRequest(), monkeypatch) == []
    request = StopRequest()
    request.ending = True
    assert told(request, monkeypatch, lambda: request.receive(signal.SIGINT)) == []


SLOW_MODULE = "import time\nfor _ in range(60):\n    time.sleep(0.01)\nDONE = True\n"


def after(seconds, number=signal.SIGINT):
    """Have this process get a signal."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    return timer


def import_and_wait(name):
    import_module(name)
    time.sleep(5)


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "imported_slowly.py").write_text(SLOW_MODULE)
    return "imported_slowly"


def test_ctrl_c_waits_for_the_end_of_an_import(slow_module):
    before, timer = signal.getsignal(signal.SIGINT), after(0.2)
    with pytest.raises(KeyboardInterrupt), imports_finished():
        time.sleep(0 * len(dir(import_module(slow_module))) + 5)
    timer.join()
    assert sys.modules[slow_module].DONE
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_waits_comes_at_the_latest_at_the_end(slow_module):
    timer = after(0.55)
    with pytest.raises(KeyboardInterrupt), imports_finished():
        import_module(slow_module)
    timer.join()
    time.sleep(0.3)  # it does not come again
    assert sys.modules[slow_module].DONE


def test_a_second_ctrl_c_ends_an_import(slow_module):
    timers = [after(0.1), after(0.25)]
    with pytest.raises(KeyboardInterrupt), imports_finished():
        import_module(slow_module)
    for timer in timers:
        timer.join()
    assert slow_module not in sys.modules


def test_ctrl_c_comes_at_once_where_nothing_is_imported():
    timer, began = after(0.1), time.monotonic()
    with pytest.raises(KeyboardInterrupt), imports_finished():
        time.sleep(5)
    timer.join()
    assert time.monotonic() - began < 4


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", sorted(HEARD))
def test_a_signal_stops_each_block_around_the_one_that_gets_it_and_those_that_begin_later(number):
    noted = []
    with stop_on_signals() as sweep:
        sweep.note_by(lambda *verdict: noted.append(verdict))
        with stop_on_signals() as trial:
            signal.raise_signal(number)
        with stop_on_signals() as next_trial:
            pass
    assert trial.verdict() == next_trial.verdict() == sweep.verdict() == noted[0]
    assert [one.num_signals for one in (trial, next_trial, sweep)] == [1, 1, 1]
    assert len(noted) == 1
    assert sweep.reason == HEARD[number]


@pytest.mark.usefixtures("handlers")
def test_a_second_signal_ends_the_inner_block_alone():
    with stop_on_signals() as sweep:
        with stop_on_signals():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert sweep.num_signals == 1
