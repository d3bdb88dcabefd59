"""A controller in the driver leaves Ray alone when the run is given up: Ray ends a process that calls it later."""

import asyncio
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from rtrain.engine.ray import controller as controllers
from rtrain.engine.ray import worker_group
from rtrain.engine.ray.controller import RunTrainer, _Controller
from rtrain.engine.ray.worker_group import Group


class Trainer:
    """Trains until it is left, and is in the middle of something then for a while."""

    def __init__(self, *, is_local, seconds=0.0):
        self.left, self.is_local, self.seconds = threading.Event(), is_local, seconds
        self.log = []

    def fit(self):
        self.left.wait(30)
        time.sleep(self.seconds)
        self.log.append("ended")

    def leave(self):
        if self.is_local:
            self.left.set()
        return self.is_local


def test_what_is_given_up_is_left_before_the_cluster_ends():
    group, trainer = Group("mine"), Trainer(is_local=True, seconds=0.3)
    group.begin(trainer)
    group.leave()
    assert (trainer.log, group.is_there) == (["ended"], False)


def test_a_controller_that_is_a_process_ends_with_the_cluster():
    group, trainer = Group("mine"), Trainer(is_local=False)
    group.begin(trainer)
    group.leave()
    assert (trainer.log, group.is_there) == ([], True)
    trainer.left.set()


def test_ctrl_c_in_a_wait_for_the_end_does_not_bring_it():
    group, trainer = Group("mine"), Trainer(is_local=True)
    group.begin(trainer)
    press = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        group.is_over(20)
    assert group.is_there, "Python 3.11 takes a thread for ended whose join was interrupted"
    group.leave()
    assert (trainer.log, group.is_there) == (["ended"], False)


def test_training_that_is_over_has_nothing_to_leave(monkeypatch):
    group, trainer = Group("mine"), Trainer(is_local=True)
    trainer.left.set()
    group.begin(trainer)
    assert group.is_over(10)
    monkeypatch.setattr(trainer, "leave", lambda: pytest.fail("left"))
    group.leave()


def test_one_that_does_not_notice_is_waited_for_a_while_only(monkeypatch):
    monkeypatch.setattr(worker_group, "LEAVE_SECONDS", 0.1)
    group, trainer = Group("mine"), Trainer(is_local=True, seconds=2)
    group.begin(trainer)
    began = time.monotonic()
    group.leave()
    assert time.monotonic() - began < 1.5
    assert group.is_over(10)


@pytest.mark.parametrize("is_left", [True, False])
def test_a_controller_that_was_left_takes_no_step_more(is_left):
    controller, steps = object.__new__(_Controller), []
    controller._is_left = lambda: is_left

    def get_state():
        steps.append(1)
        raise RuntimeError("a step")

    controller.get_state = get_state
    with pytest.raises(asyncio.CancelledError if is_left else RuntimeError):
        asyncio.run(controller._step())
    assert steps == ([] if is_left else [1])


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("is_actor", [True, False])
def test_a_trainer_is_left_before_its_controller_is_made(is_actor, is_lost, monkeypatch):
    """Workers that it waits for are taken away; a cluster that is lost would not answer."""
    freed = []
    monkeypatch.setattr(controllers, "remove_placement_groups", freed.append)
    trainer = object.__new__(RunTrainer)
    trainer._is_actor, trainer._left, trainer._channel = is_actor, threading.Event(), "mine"
    trainer._cluster = SimpleNamespace(is_lost=is_lost)
    assert trainer.leave() is not is_actor
    assert trainer._is_left()
    assert freed == ([] if is_actor or is_lost else ["mine"])
