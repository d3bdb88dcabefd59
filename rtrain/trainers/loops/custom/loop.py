"""Run a user's Ray Train loop, ``train_loop_per_worker(config)``, unchanged; its reports reach the run directory."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import ray.train
from ray.train.v2._internal.execution.train_fn_utils import set_train_fn_utils

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.argument_types import parameters_of
from rtrain.config.targets.arguments import check_names_known, check_type
from rtrain.config.targets.instantiate import locate, locate_function, no_arguments
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.custom.predictor import check_predictor
from rtrain.trainers.loops.custom.reports import LocalReports, RayReports, StopTraining
from rtrain.trainers.loops.custom.separate_models import one_model
from rtrain.trainers.loops.custom.shards import check_split_name
from rtrain.trainers.loops.custom.world import LoopWorld, kept_variables
from rtrain.trainers.loops.seeding import seed_step
from rtrain.trainers.worker import Worker


def train_custom(
    worker: Worker, path: str, config: Mapping[str, Any], arguments: Mapping[str, Any], world: LoopWorld
) -> None:
    """Call the function ``path`` (``module:function``) on this worker, with ``config`` if it takes one.

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
            _call(function, config, arguments)
        utils.finish()


@contextmanager
def _left_as_it_was() -> Iterator[None]:
    """Take back what the block has done to the variables of the environment, and end the cluster that it has started.

    Ray starts one by itself where a loop in this process asks for what only a cluster has: its callback for Lightning
    wants a job's number.
    """
    had_cluster = ray.is_initialized()
    with kept_variables():
        try:
            yield
        finally:
            if ray.is_initialized() and not had_cluster:
                _end_reading()
                ray.shutdown()


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


def check_custom(job: Job) -> None:
    """Find out before anything starts whether a job's train loop and predictor are functions that can be called.

    Raises:
        ConfigError: One of them can't be imported, or takes other arguments.
    """
    conf = job.conf.trainer
    _refuse_notebook(conf.train_loop)
    function = locate_function(conf.train_loop, "trainer.train_loop", job.allow)
    check_arguments(function, conf.arguments, conf.train_loop)
    config_parameter(function, conf.arguments)
    if conf.validation_config is not None:
        key = "trainer.validation_config"
        validate = locate_function(conf.validation_config.function, f"{key}.function", job.allow)
        check_arguments(validate, conf.validation_config.arguments, conf.validation_config.function, f"{key}.arguments")
    if job.dataset is not None and conf.datasets_to_split != "all":
        for name in conf.datasets_to_split:
            check_split_name(job.dataset, name)
    if conf.predictor is not None:
        check_predictor(conf.predictor, job.allow)
    check_rows_suffice(job)


def _refuse_notebook(path: str) -> None:
    """Refuse a notebook: which of its cells define the loop, and which ones train, only its author knows.

    Raises:
        ConfigError: Says how it becomes a module.
    """
    file, _, name = path.partition(":")
    if file.endswith(".ipynb"):
        raise ConfigError(
            f"trainer.train_loop: {file} is a notebook, and workers import a module.",
            to_try(
                f"jupyter nbconvert --to script {file}",
                f"then, without the cells that only try things out: trainer.train_loop={Path(file).stem}:{name}",
            ),
        )


def check_arguments(function: Any, arguments: Mapping[str, Any], path: str, where: str = "trainer.arguments") -> None:
    """Find out whether a function has these arguments, and whether they may be of these types.

    Raises:
        TargetError: It hasn't, or they can't; names the argument.
    """
    parameters = parameters_of(function)
    if parameters is None:
        return
    by_name = {name: one for name, one in parameters.items() if one.kind is not one.POSITIONAL_ONLY}
    check_names_known(by_name, list(arguments), where, path)
    for name, value in arguments.items():
        if name in by_name:
            check_type(value, by_name[name], f"{where}.{name}", by_default=False)


def check_rows_suffice(job: Job) -> None:
    """Refuse more workers than a data set has rows that they are to share: Ray would give none to any of them.

    Raises:
        ConfigError: Names the data set.
    """
    if job.dataset is None or not job.conf.datasets:
        return
    wanted, num_workers = job.conf.trainer.datasets_to_split, job.conf.scaling.min_workers
    shared = [name for name in job.dataset.splits if wanted == "all" or name in wanted]
    for name in shared:
        count = job.dataset.splits[name].num_rows
        if count < num_workers:
            others = ",".join(one for one in shared if one != name)
            raise ConfigError(
                f"{num_workers} workers can't share {count} rows of the data set '{name}'.",
                to_try(f"'trainer.datasets_to_split=[{others}]'", f"each worker has all of '{name}'"),
            )


def _call(function: Any, config: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    named, taker = deepcopy(dict(arguments)), config_parameter(function, arguments)
    if taker is None:
        function(**named)
    elif taker.kind is taker.POSITIONAL_ONLY:
        function(dict(config), **named)
    else:
        function(**{taker.name: dict(config)}, **named)


def config_parameter(function: Any, arguments: Collection[str] = ()) -> inspect.Parameter | None:
    """Return the parameter of a train loop that takes its config, as Ray Train decides it; None if it takes none.

    Args:
        function: The loop.
        arguments: Names of what it gets by name.

    Raises:
        ConfigError: It needs more than one other argument.
    """
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    needed = [
        one for one in parameters if one.kind not in several and one.default is one.empty and one.name not in arguments
    ]
    named = [one.name for one in needed if one.kind is inspect.Parameter.KEYWORD_ONLY]
    if len(needed) > 1 or named:
        name = getattr(function, "__name__", str(function))
        problem = f"needs {named[0]} by name" if named else f"needs {len(needed)} arguments"
        raise ConfigError(
            f"trainer.train_loop: {name} {problem}; a train loop takes none, or one config.",
            "Give it the others by name: trainer.arguments={" + f"{needed[-1].name}: ...}}",
        )
    return needed[0] if needed else None
