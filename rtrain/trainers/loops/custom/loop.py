"""Run a user's Ray Train loop, ``train_loop_per_worker(config)``, unchanged; its reports reach the run directory."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, suppress
from copy import deepcopy
from typing import Any

import ray.train
from ray.train.v2._internal.execution.train_fn_utils import set_train_fn_utils

from rtrain.trainers.loops.custom.checks import config_parameter
from rtrain.trainers.loops.custom.reports.train_fn_utils import LocalReports, RayReports, StopTraining
from rtrain.trainers.loops.custom.reports.tune import reached_by_ray_tune
from rtrain.trainers.loops.custom.separate_models import one_model
from rtrain.trainers.loops.custom.shards.quiet import quiet_ray_data
from rtrain.trainers.loops.custom.world import Frameworks, LoopWorld
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.worker import Worker


def train_custom(
    worker: Worker,
    path: str,
    config: Mapping[str, Any],
    arguments: Mapping[str, Any],
    world: LoopWorld,
    frameworks: Frameworks,
) -> None:
    """Call the function ``path`` (``module:function``) on this worker, with ``config`` if it takes one.

    ``ray.train.report``, ``get_checkpoint``, ``get_context`` and ``prepare_model`` work as under Ray Train, also
    without a cluster. When the run is to stop, the loop ends at its next report. A loop that resumes draws other random
    numbers than the ones it began with.
    """
    utils: LocalReports | RayReports = LocalReports(worker) if worker.in_process else RayReports(worker)
    with ExitStack() as stack:
        stack.enter_context(_left_as_it_was())
        stack.enter_context(quiet_ray_data(is_driver=worker.in_process))
        stack.enter_context(world.entered(worker))
        stack.enter_context(one_model(worker, world.framework, frameworks))
        function = worker.builder.locate(path, "trainer.train_loop")
        stack.enter_context(reached_by_ray_train(utils))
        stack.enter_context(reached_by_ray_tune(utils))
        utils.repeat_validations()
        ray.train.get_checkpoint()  # the first call imports modules that draw random numbers
        world.seed(seed_step(worker.run.seed, worker.rank, utils.number))
        stack.enter_context(chdir("."))  # the loop may change to another folder, or remove it
        with suppress(StopTraining):
            if not utils.over_before():
                begun = utils.number
                _call(function, config, arguments)
                if utils.number == begun and worker.rank == 0:
                    worker.notice(_nothing_reported(begun))
        utils.finish()


def _nothing_reported(before: int) -> str:
    """Return what a loop should know that ended without a report; ``before`` it, it had made so many."""
    if before:
        return (
            f"the loop has reported nothing since report {before}: nothing was trained. Check how it uses "
            "ray.train.get_checkpoint() and trainer.train_loop_config"
        )
    return (
        "the loop has reported nothing: the run has no metrics and no checkpoint. "
        'Call ray.train.report({"loss": loss}, checkpoint=...) after each epoch: docs/scripts.md'
    )


@contextmanager
def _left_as_it_was() -> Iterator[None]:
    """Take back what the block has done to the variables of the environment, and end the cluster that it has started.

    Ray starts one by itself where a loop in this process asks for what only a cluster has: its callback for Lightning
    wants a job's number. It would join one that `ray start` has left a file of, dead or another's, were it not told to.
    """
    had_cluster, before = ray.is_initialized(), dict(os.environ)
    if not had_cluster:
        os.environ.setdefault("RAY_ADDRESS", "local")
    try:
        yield
    finally:
        if ray.is_initialized() and not had_cluster:
            _end_reading()
            ray.shutdown()
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _end_reading() -> None:
    """Have Ray Data end what was read in part; after Ray's end it would start Ray again, or end the process."""
    if "ray.data" not in sys.modules:
        return
    from ray.data._internal.execution.streaming_executor import StreamingExecutor

    for one in gc.get_objects():
        if type(one) is StreamingExecutor:
            one.shutdown(force=True)


@contextmanager
def reached_by_ray_train(utils: LocalReports | RayReports) -> Iterator[None]:
    """Have the functions of ``ray.train`` reach ``utils`` in the block."""
    set_train_fn_utils(utils)
    try:
        yield
    finally:
        has_leftovers = utils.close()
        # The user's process may use Ray Train afterwards; in threads of the loop Ray would raise errors.
        if not utils.is_distributed() and not has_leftovers:
            set_train_fn_utils(None)


def _call(function: Any, config: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    named, taker = deepcopy(dict(arguments)), config_parameter(function, arguments)
    if taker is None:
        function(**named)
    elif taker.kind is taker.POSITIONAL_ONLY:
        function(dict(config), **named)
    else:
        function(**{taker.name: dict(config)}, **named)
