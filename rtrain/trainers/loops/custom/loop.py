"""Run a user's Ray Train loop, ``train_loop_per_worker(config)``, unchanged; its reports reach the run directory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, suppress
from typing import Any

import ray.train
from ray.train.v2._internal.execution.train_fn_utils import set_train_fn_utils

from rtrain.config.targets.instantiate import locate, locate_function, no_arguments
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.custom.predictor import check_predictor
from rtrain.trainers.loops.custom.reports import LocalReports, RayReports, StopTraining
from rtrain.trainers.loops.custom.separate_models import one_model
from rtrain.trainers.loops.custom.world import LoopWorld
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.worker import Worker


def train_custom(worker: Worker, path: str, config: Mapping[str, Any], world: LoopWorld) -> None:
    """Call the function ``path`` (``module:function``) on this worker, with ``config`` if it takes an argument.

    ``ray.train.report``, ``get_checkpoint``, ``get_context`` and ``prepare_model`` work as under Ray Train, also
    without a cluster. When the run is to stop, the loop ends at its next report. A loop that resumes draws other random
    numbers than the ones it began with.
    """
    utils: LocalReports | RayReports = LocalReports(worker) if worker.in_process else RayReports(worker)
    with ExitStack() as stack:
        stack.enter_context(_left_as_it_was())
        stack.enter_context(no_arguments())
        stack.enter_context(world.entered(worker))
        stack.enter_context(one_model(worker, world.framework))
        function = locate(path, "trainer.train_loop", worker.allow)
        stack.enter_context(reached_by_ray_train(utils))
        ray.train.get_checkpoint()  # the first call imports modules that draw random numbers
        world.seed(seed_step(worker.run.seed, worker.rank, utils.number))
        stack.enter_context(chdir("."))  # the loop may change to another folder, or remove it
        with suppress(StopTraining):
            function(dict(config)) if takes_config(function) else function()
        utils.finish()


@contextmanager
def _left_as_it_was() -> Iterator[None]:
    """Take back what the block has done to the variables of the environment, and end the cluster that it has started.

    Ray starts one by itself where a loop in this process asks for what only a cluster has: its callback for Lightning
    wants a job's number.
    """
    before, had_cluster = dict(os.environ), ray.is_initialized()
    try:
        yield
    finally:
        if not had_cluster:
            ray.shutdown()
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


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


def check_custom(job: Job) -> None:
    """Find out before anything starts whether a job's train loop and predictor are functions that can be called.

    Raises:
        ConfigError: One of them can't be imported, or takes other arguments.
    """
    conf = job.conf.trainer
    takes_config(locate_function(conf.train_loop, "trainer.train_loop", job.allow))
    if conf.predictor is not None:
        check_predictor(conf.predictor, job.allow)


def takes_config(function: Any) -> bool:
    """Tell whether a train loop takes a config, as Ray Train decides it.

    Raises:
        ConfigError: It needs more than one argument.
    """
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    needed = [one for one in parameters if one.kind not in several and one.default is one.empty]
    named = [one.name for one in needed if one.kind is inspect.Parameter.KEYWORD_ONLY]
    if len(needed) > 1 or named:
        name = getattr(function, "__name__", str(function))
        problem = f"needs {named[0]} by name" if named else f"needs {len(needed)} arguments"
        raise ConfigError(f"trainer.train_loop: {name} {problem}; a train loop takes none, or one config.")
    return bool(needed)
