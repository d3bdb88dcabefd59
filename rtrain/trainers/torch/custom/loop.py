"""Run a user's Ray Train loop, ``train_loop_per_worker(config)``, unchanged; its reports reach the run directory."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, suppress
from functools import partial
from typing import Any

from ray.train.v2._internal.execution.train_fn_utils import set_train_fn_utils

from rtrain.config.targets.instantiate import locate, locate_function
from rtrain.errors import ConfigError
from rtrain.trainers.base import Job
from rtrain.trainers.torch.custom.reports import LocalReports, RayReports, StopTraining
from rtrain.trainers.torch.custom.worlds import one_model
from rtrain.trainers.worker import Worker


def train_custom(worker: Worker, path: str, config: Mapping[str, Any]) -> None:
    """Call the function ``path`` (``module:function``) on this worker, with ``config`` if it takes an argument.

    ``ray.train.report``, ``get_checkpoint``, ``get_context`` and ``prepare_model`` work as under Ray Train, also
    without a cluster. When the run is to stop, the loop ends at its next report.
    """
    import ray.train.torch  # Ray's workers have imported it too: Ray's own strategies for Lightning count on it

    utils: LocalReports | RayReports = LocalReports(worker) if worker.in_process else RayReports(worker)
    with ExitStack() as stack:
        stack.enter_context(one_model(worker))
        function = locate(path, "trainer.train_loop", worker.allow)
        stack.enter_context(reached_by_ray_train(utils))
        ray.train.get_checkpoint()  # the first call imports modules that draw random numbers
        stack.enter_context(_seeded(worker, utils.number))
        stack.enter_context(chdir("."))  # the loop may change to another folder, or remove it
        with suppress(StopTraining):
            function(dict(config)) if takes_config(function) else function()
        utils.finish()


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


@contextmanager
def _seeded(worker: Worker, number: int) -> Iterator[None]:
    """Seed ``random``, NumPy and torch by ``run.seed``, the rank and the number of the report to resume from.

    A loop that resumes draws other numbers than the ones it began with. Afterwards torch draws as it did before.
    """
    import torch

    from rtrain.trainers.loops.seeding import seed_step
    from rtrain.trainers.torch.process_settings import torch_settings

    with torch.random.fork_rng(devices=[]), torch_settings(worker, deterministic=None):
        torch.manual_seed(seed_step(worker.run.seed, worker.rank, number) >> 1)
        yield


def check_custom(job: Job) -> None:
    """Find out before anything starts whether the train loop of a job is a function that a worker can call.

    Raises:
        ConfigError: It can't be imported, takes more than one argument, or is to do what only it can do by itself.
    """
    takes_config(locate_function(job.conf.trainer.train_loop, "trainer.train_loop", job.allow))
    if job.conf.run.init_from is not None:
        raise ConfigError(
            "run.init_from: a custom train loop loads its initial weights itself.",
            f"Pass the path to the loop: trainer.train_loop_config.init_from={job.conf.run.init_from}",
        )


def takes_config(function: Any) -> bool:
    """Tell whether a train loop takes a config, as Ray Train decides it.

    Raises:
        ConfigError: It needs more than one argument.
    """
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    needed = sum(one.kind in kinds and one.default is one.empty for one in parameters)
    if needed > 1:
        name = getattr(function, "__name__", str(function))
        raise ConfigError(
            f"trainer.train_loop: {name} needs {needed} arguments; a train loop takes none, or one config."
        )
    return needed == 1


def custom_loop(path: str, config: Mapping[str, Any]) -> partial[None]:
    """Return the train loop that runs ``path``."""
    return partial(train_custom, path=path, config=config)
