"""Workers that would wait for each other forever say so: each case is played by states that workers pin up."""

import json
import time
from types import SimpleNamespace

import pytest

from rtrain.config.run_conf import RunConf
from rtrain.errors import TrainingError
from rtrain.runs.records import NoticeRecord
from rtrain.trainers.loops.custom.shards import turns
from rtrain.trainers.loops.custom.shards.turns import Turns


class Board(dict):
    """What all workers see; the state of worker 1 may change with each look."""

    def __init__(self, *states):
        super().__init__()
        self.states = list(states)

    def pin(self, key, value):
        self[key] = value

    def pinned(self, key):
        if key != "turns-1":
            return self.get(key)
        return json.dumps(self.states.pop(0) if len(self.states) > 1 else self.states[0])


def state(meetings=0, **passes):
    return {"meetings": meetings, "passes": passes}


@pytest.fixture
def clock(monkeypatch):
    """A clock on which each look takes a second."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda _: now.__setitem__(0, now[0] + 1))
    return now


def make_turns(board, *, hang_seconds=None, rank=0, world_size=2, dataset=True):
    run = RunConf(name="test")
    run.failure.hang_seconds = hang_seconds
    sent = []
    splits = {"train": None, "val": None}
    worker = SimpleNamespace(
        rank=rank,
        world_size=world_size,
        data=SimpleNamespace(splits=splits) if dataset else None,
        conf=SimpleNamespace(datasets_to_split="all"),
        run=run,
        channel=SimpleNamespace(send=sent.append),
    )
    return Turns(worker, board), sent


def test_a_pass_begins_when_the_others_have_begun_it(clock):
    one, sent = make_turns(Board(state(), state(), state(train=1)))
    one.begin("train")
    assert sent == []


@pytest.mark.parametrize("other", [state(meetings=1), state(meetings=turns.OVER), state(train=1)])
def test_two_workers_that_wait_for_each_other_are_named(clock, other):
    one, _ = make_turns(Board(other))
    with pytest.raises(TrainingError, match="'val', worker 1 did not") as caught:
        one.begin("val")
    assert "'trainer.datasets_to_split=[train]'" in caught.value.hint
    assert clock[0] >= turns.GRACE_SECONDS


def test_a_worker_that_is_only_late_is_waited_for(clock):
    late = [state()] * int(turns.NOTICE_SECONDS + 5)
    one, sent = make_turns(Board(*late, state(val=1)))
    one.begin("val")
    assert [type(record) for record in sent] == [NoticeRecord]


def meet(one):
    with one.meeting():
        pass


def test_a_meeting_that_both_have_left_is_no_deadlock(clock):
    one, _ = make_turns(Board(*[state(meetings=1)] * 100, state(meetings=1, train=1)))
    meet(one)
    one.begin("train")


def test_a_worker_that_comes_a_moment_later_is_no_deadlock(clock):
    one, _ = make_turns(Board(*[state(meetings=1)] * 5, *[state(meetings=1, val=1)]))
    one.begin("val")


def test_a_worker_that_never_comes_ends_the_run_when_it_hangs(clock):
    one, _ = make_turns(Board(state()), hang_seconds=100)
    with pytest.raises(TrainingError, match="'val'"):
        one.begin("val")
    assert clock[0] >= 100


@pytest.mark.parametrize("dataset", [True, False])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_worker_that_waits_for_one_whose_loop_is_over_is_named(clock, before, dataset):
    """Rank 0 alone reports, or one rank reports once more than the others."""
    one, _ = make_turns(Board(*[state(meetings=before)] * 20, state(meetings=before + 1)), dataset=dataset)
    for _ in range(before):
        meet(one)
    with pytest.raises(TrainingError, match=r"worker 1 waits in ray\.train\.report .* train loop has ended\."):
        one.over()


def test_a_meeting_that_was_waited_for_in_vain_does_not_count(clock):
    """A loop may try it again: Ray Train has a time-out for it."""
    one, _ = make_turns(Board(*[state(meetings=2)] * 20, state(meetings=turns.OVER)))
    meet(one)
    with pytest.raises(TimeoutError), one.meeting():
        raise TimeoutError
    meet(one)
    one.over()


def test_a_loop_that_is_over_waits_for_the_others_however_long_they_take(clock):
    one, _ = make_turns(Board(*[state(meetings=1)] * 500, state(meetings=2), state(meetings=turns.OVER)))
    for _ in range(2):
        meet(one)
    one.over()
    assert clock[0] > 400


def test_a_worker_alone_pins_nothing():
    board = Board(state())
    one, _ = make_turns(board, world_size=1)
    meet(one)
    one.begin("train")
    one.over()
    assert board == {}
