"""The way between workers and driver, over a key-value store that fails."""

import threading
import time
from dataclasses import replace

import pytest
from processes import until
from ray.exceptions import RpcError
from ray.experimental import internal_kv

from rtrain.cluster import key_value_store
from rtrain.engine.ray import channel
from rtrain.engine.ray.channel import MOST_LINES_AT_ONCE, ControllerChannel, DriverChannel, WorkerChannel
from rtrain.errors import RunDirError, TrainingError
from rtrain.runs.events import Event
from rtrain.runs.records import AttemptFailedRecord, FailureKind, LogRecord, NoticeRecord

FAST = 0.005


class Store:
    """Ray's store, in this process."""

    def __init__(self, monkeypatch):
        self.kept, self.failures, self.calls = {}, 0, 0
        self.lock = threading.Lock()
        for name in ("get", "put", "del", "list"):
            monkeypatch.setattr(internal_kv, f"_internal_kv_{name}", self.failing(getattr(self, name)))

    def failing(self, method):
        def call(key, *values, namespace):
            with self.lock:
                self.calls += 1
                if self.failures:
                    self.failures -= 1
                    raise RpcError("the head is busy", rpc_code=14)
                key = key.encode() if isinstance(key, str) else key
                return method(key, *values)

        return call

    def get(self, key):
        return self.kept.get(key)

    def put(self, key, value):
        self.kept[key] = value.encode()

    def list(self, prefix):
        return [key for key in self.kept if key.startswith(prefix)]


setattr(Store, "del", lambda self, key: self.kept.pop(key, None))


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(key_value_store, "PAUSES_SECONDS", (0, 0, 0, 0))
    return Store(monkeypatch)


def report(step):
    return Event.at(0.0, step=step, epoch=0, metrics={})


def test_calls_that_fail_some_times_lose_nothing(store, monkeypatch):
    monkeypatch.setattr(key_value_store, "PAUSES_SECONDS", (0,) * 40)  # all failures may hit the same call
    taken = []
    driver, worker = DriverChannel("run", lambda record, _: taken.append(record), FAST), WorkerChannel("run", 0, FAST)
    for step in range(20):
        with store.lock:
            store.failures = step % 4
        worker.send(report(step))
        worker.flush()
    worker.close()
    worker.check()
    driver.close()
    driver.check()
    assert [one.step for one in taken] == list(range(20))
    assert store.kept == {}


def test_the_last_words_of_a_worker_that_is_killed_are_there(store):
    """Nothing is delivered by a thread here: the process is killed before that wakes up."""
    taken, slow = [], 1000
    worker = WorkerChannel("run", 0, slow)
    for word in ("about ", "to die\n"):
        worker.send(LogRecord(rank=0, text=word))
    driver = DriverChannel("run", lambda record, _: taken.append(record), FAST)
    driver.close()
    assert "".join(one.text for one in taken) == "about to die\n"
    worker.close()


def test_a_million_lines_are_not_as_many_deliveries(store):
    worker = WorkerChannel("run", 0, 1000)
    began = time.monotonic()
    for number in range(10_000):
        worker.send(LogRecord(rank=0, text=f"{number}\n"))
    seconds = time.monotonic() - began
    assert len(store.kept) <= MOST_LINES_AT_ONCE * (1 + seconds) + 1
    worker.close()


def test_what_is_printed_while_a_line_is_delivered_is_delivered_too(store, monkeypatch):
    worker, put, taken = WorkerChannel("run", 0, 1000), key_value_store.put, []

    def printing(key, value):
        if len(store.kept) == 0 and "inner" not in value:
            worker.send(LogRecord(rank=0, text="inner\n"))
        put(key, value)

    monkeypatch.setattr(key_value_store, "put", printing)
    worker.send(LogRecord(rank=0, text="outer\n"))
    worker.close()
    driver = DriverChannel("run", lambda record, _: taken.append(record.text), FAST)
    driver.close()
    assert sorted(taken) == ["inner\n", "outer\n"]


def test_a_worker_whose_reports_can_not_be_delivered_hears_of_it_wherever_it_looks(store):
    worker = WorkerChannel("run", 1, FAST)
    store.failures = 10**9
    worker.send(report(1))
    assert until(lambda: worker._error is not None, seconds=20)
    for look in (worker.check, lambda: worker.stop_reason, lambda: worker.send(report(2))):
        with pytest.raises(RpcError):
            look()
    worker.close()


def test_what_can_not_be_written_as_json_is_told_too(store):
    loop = []
    loop.append(loop)
    worker = WorkerChannel("run", 0, FAST)
    worker.send(replace(report(1), values={"loop": loop}))
    assert until(lambda: worker._error is not None, seconds=20)
    with pytest.raises(ValueError, match=r"[Cc]ircular"):
        worker.check()
    worker.close()


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (RunDirError("no space"), RunDirError),
        (OSError(28, "No space left"), TrainingError),
        (KeyError("x"), TrainingError),
    ],
)
def test_what_recording_raises_is_told_to_whoever_follows(store, raised, told):
    def accept(record, channel):
        raise raised

    driver, worker = DriverChannel("run", accept, FAST), WorkerChannel("run", 0, FAST)
    worker.send(NoticeRecord(text="one"))
    assert until(lambda: driver._error is not None, seconds=20)
    with pytest.raises(told):
        driver.check()
    driver.close()
    worker.close()
    assert store.kept == {}


def test_a_driver_that_gives_up_stops_the_workers_and_answers_the_controller(store):
    driver, worker, controller = (
        DriverChannel("run", print, FAST),
        WorkerChannel("run", 0, FAST),
        ControllerChannel("run"),
    )
    controller.begin_attempt()
    driver.give_up()
    assert until(lambda: worker.stop_reason == "interrupted", seconds=20)
    controller.ask(AttemptFailedRecord(kind=FailureKind.EXCEPTION, message=""))
    assert controller.answer() is False
    worker.close()
    driver.close()


def test_what_is_printed_between_two_deliveries_is_one_record(store):
    worker = WorkerChannel("run", 0, interval_seconds=3600)
    for number in range(1000):
        worker.send(LogRecord(rank=0, text=f"{number}"))
        worker.send(LogRecord(rank=0, text=" "))
    worker.send(report(1))
    worker.send(LogRecord(rank=0, text="after\n"))
    worker.close()
    taken = []
    driver = DriverChannel("run", lambda record, _: taken.append(record), FAST)
    driver.close()
    assert [type(one) for one in taken] == [LogRecord, Event, LogRecord]
    assert taken[0].text.split() == [str(number) for number in range(1000)]


class OwnCluster:
    """One that this process has started."""

    def __init__(self, *, is_lost=False):
        self.session, self.is_lost = object(), is_lost


@pytest.fixture
def silent(store):
    """A store that answers nothing until the test is over."""
    over = threading.Event()
    answer, store.list = store.list, lambda prefix: over.wait() and answer(prefix)
    internal_kv._internal_kv_list = store.failing(store.list)  # undone with the store
    yield store
    over.set()


def test_the_last_records_of_a_lost_cluster_are_waited_for_a_while_only(silent, monkeypatch):
    """Ray ends a process soon whose cluster is lost: what became of the run has to be written before."""
    monkeypatch.setattr(channel, "LOST_SECONDS", 0.2)
    driver = DriverChannel("run", print, FAST, OwnCluster(is_lost=True))
    began = time.monotonic()
    driver.close()
    assert time.monotonic() - began < 10 < channel.CLOSE_SECONDS
    assert driver.is_cut_off


def test_what_workers_of_a_lost_cluster_have_left_is_taken_if_it_can_be(store):
    worker = WorkerChannel("run", 0, interval_seconds=3600)
    worker.send(report(1))
    worker.close()
    taken = []
    driver = DriverChannel("run", lambda record, _: taken.append(record), 3600, OwnCluster(is_lost=True))
    driver.close()
    assert [record.step for record in taken] == [1]
    assert not driver.is_cut_off


def test_the_keys_of_a_run_end_with_a_cluster_of_its_own(store):
    """Nothing more is asked of a cluster that may be lost at any moment."""
    ControllerChannel("run").begin_attempt()
    driver = DriverChannel("run", print, FAST, OwnCluster())
    driver.close()
    assert list(store.kept) == [b"run!attempt"]
