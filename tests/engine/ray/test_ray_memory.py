"""Workers that Ray has killed because memory ran low: it raises another error for them than for those that died."""

import asyncio
from types import SimpleNamespace

import pytest
from ray.exceptions import OutOfMemoryError
from ray.train.v2._internal.exceptions import WorkerGroupStartupFailedError, WorkerHealthCheckFailedError
from ray.train.v2._internal.execution.controller import TrainController
from ray.train.v2._internal.execution.worker_group import WorkerGroup
from ray.train.v2.api.exceptions import ControllerError, WorkerGroupError

from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf
from rtrain.engine.failures import ending_of
from rtrain.engine.ray.attempts import Attempts
from rtrain.engine.ray.controller import _Controller, _worker_group
from rtrain.engine.ray.failures import read_failures
from rtrain.process.interrupts import StopRequest
from rtrain.runs.records import FailureKind

KILLED = OutOfMemoryError("1 worker(s) were killed due to the node running low on memory. Memory on the node was 5.9GB")


def test_a_worker_that_ray_killed_is_out_of_memory():
    failure = WorkerHealthCheckFailedError("the poll failed", failure=KILLED)
    ending = ending_of([], read_failures(WorkerGroupError("failed", {1: failure})).workers)
    assert (ending.kind, ending.rank) == (FailureKind.OUT_OF_MEMORY, 1)
    assert ending.message == "worker 1 was killed because the machine ran out of memory"


def test_the_other_workers_are_ended_although_ray_stumbles_over_the_killed_one(monkeypatch):
    """Its callbacks talk to all workers, and expect no such error."""

    def stumbles(self):
        raise KILLED

    ended = []
    group = object.__new__(_worker_group("name", 1.0, inherits=True))
    group._worker_group_state = SimpleNamespace(shutdown=lambda: ended.append("workers"))
    monkeypatch.setattr(WorkerGroup, "shutdown", stumbles)
    monkeypatch.setattr(WorkerGroup, "_clear_state", lambda self: ended.append("state"))
    group.shutdown()
    assert ended == ["workers", "state"]


def test_a_worker_that_is_killed_while_it_starts_is_tried_again(monkeypatch, tmp_path):
    async def starts(self):
        raise KILLED

    monkeypatch.setattr(TrainController, "_step", starts)
    controller = object.__new__(_Controller)
    controller.get_state, controller._is_left = lambda: None, None
    with pytest.raises(WorkerGroupStartupFailedError) as raised:  # Ray asks again after this one alone
        asyncio.run(controller._step())
    failed = read_failures(ControllerError(raised.value))
    attempts = Attempts(SimpleNamespace(run_dir=tmp_path), RtrainConf(run=RunConf(name="test")), StopRequest())
    assert attempts._ending_of(failed).kind == FailureKind.OUT_OF_MEMORY
