"""A worker that gets no further tells where it hangs, and ends."""

import time

import pytest

from rtrain.engine.failures import ending_of
from rtrain.engine.watchdog import EXIT_CODE, Watchdog
from rtrain.trainers.liveness import Life


class Channel:
    def __init__(self, told=False):
        self.records, self.told = [], told

    def send(self, record):
        self.records.append(record)

    def report_hang(self):
        self.told = True

    def peer_hang_reported(self):
        return self.told


@pytest.fixture
def watched(tmp_path, monkeypatch):
    monkeypatch.setattr("rtrain.engine.watchdog.GRACE_SECONDS", 0.0)
    made = []

    def make(life, seconds, told=False):
        ends, channel = [], Channel(told)
        watchdog = Watchdog(1, life, seconds, tmp_path, channel, end=ends.append)
        made.append(watchdog)
        return ends, channel

    yield make
    for watchdog in made:
        watchdog.close()


def hang_for(seconds):
    time.sleep(seconds)


def test_a_worker_without_signs_of_life_writes_its_stacks_and_ends(watched, tmp_path):
    life = Life()
    life.sign(step=4)
    ends, channel = watched(life, 0.2)
    hang_for(0.6)
    assert ends == [EXIT_CODE]
    assert "hang_for" in (tmp_path / "worker-1.stacks.txt").read_text()
    ending = ending_of(channel.records, [])
    assert ending.kind == "hang"
    assert "engine/test_watchdog.py:" in ending.message
    assert "(hang_for)" in ending.message
    assert channel.told


def test_a_worker_that_never_took_a_step_is_not_watched(watched):
    ends, _ = watched(Life(), 0.1)
    time.sleep(0.4)
    assert ends == []


def test_a_worker_whose_training_is_over_is_not_watched(watched):
    life = Life()
    life.sign(step=4)
    life.rest()
    ends, _ = watched(life, 0.1)
    time.sleep(0.4)
    assert ends == []


def test_signs_between_steps_count(watched):
    life = Life()
    life.sign(step=1)
    ends, _ = watched(life, 0.5)
    for _ in range(10):
        time.sleep(0.1)
        life.sign()
    assert ends == []


def test_a_worker_that_waits_for_one_that_hangs_tells_where_before_its_own_time_is_over(watched):
    life = Life()
    life.sign(step=1)
    ends, channel = watched(life, 2.0, told=True)
    time.sleep(1.6)
    assert ends == [EXIT_CODE]
    assert channel.records[0].rank == 1


def test_time_in_which_the_whole_process_is_stopped_does_not_count(watched, monkeypatch):
    monotonic, stopped = time.monotonic, [0.0]
    monkeypatch.setattr("rtrain.engine.watchdog.time.monotonic", lambda: monotonic() + stopped[0])
    life = Life()
    life.sign(step=1)
    ends, _ = watched(life, 3.0)  # more than a busy machine sleeps too long
    for seconds in (20.0, 300.0):
        time.sleep(0.1)
        stopped[0] += seconds  # what a clock shows after SIGSTOP and SIGCONT
        time.sleep(0.1)
    assert ends == []
    end = monotonic() + 30
    while not ends and monotonic() < end:
        time.sleep(0.1)
    assert ends == [EXIT_CODE]


def test_one_that_takes_steps_is_not_ended_because_another_one_hangs(watched):
    life = Life()
    ends, _ = watched(life, 0.8, told=True)
    for step in range(12):
        life.sign(step=step)
        time.sleep(0.1)
    assert ends == []
