"""What is wrong with a train loop of the user's, before anything starts."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.config.targets.allow_list import project_roots
from rtrain.config.targets.argument_types import parameters_of
from rtrain.config.targets.arguments import check_names_known, check_types
from rtrain.config.targets.suspended import ASYNC, GENERATOR, why_suspended
from rtrain.errors import ConfigError, TargetError
from rtrain.trainers.base import Job
from rtrain.trainers.loops.custom.predictors.predictor import check_predictor
from rtrain.trainers.loops.custom.shards.names import check_split_name, shared_splits


def check_custom(job: Job) -> None:
    """Find out before anything starts whether a job's train loop and predictor are functions that can be called.

    Raises:
        ConfigError: One of them can't be imported, or takes other arguments.
    """
    conf = job.conf.trainer
    _refuse_notebook(conf.train_loop)
    function = job.builder.locate_function(conf.train_loop, "trainer.train_loop")
    _refuse_suspended(function, conf.train_loop)
    _check_arguments(function, conf.arguments, conf.train_loop)
    _check_config_taken(job, function)
    if conf.validation_config is not None:
        key = "trainer.validation_config"
        validate = job.builder.locate_function(conf.validation_config.function, f"{key}.function")
        _check_arguments(
            validate, conf.validation_config.arguments, conf.validation_config.function, f"{key}.arguments"
        )
    if job.dataset is not None and conf.datasets_to_split != "all":
        for name in conf.datasets_to_split:
            check_split_name(job.dataset, name)
    if conf.predictor is not None:
        check_predictor(conf.predictor, job.builder)
    _check_rows_suffice(job)


def _refuse_notebook(path: str) -> None:
    """Refuse a notebook: which of its cells define the loop, and which ones train, only its author knows.

    Raises:
        ConfigError: Says how it becomes a module.
    """
    file, _, name = path.partition(":")
    if file == "__main__":
        raise ConfigError(
            f"trainer.train_loop: {path} is a function of a notebook or script, but workers must import it from a "
            "module.",
            f"Put it into a module of the project: trainer.train_loop=my_module:{name}",
        )
    if not file.endswith(".ipynb") and _is_notebook_alone(file):
        file = f"{file.replace('.', '/')}.ipynb"
    if file.endswith(".ipynb"):
        module = ".".join(Path(file).with_suffix("").parts)
        raise ConfigError(
            f"trainer.train_loop: {file} is a notebook, but workers must import a module.",
            to_try(
                f"jupyter nbconvert --to script {file}",
                f"then, without experimental cells: trainer.train_loop={module}:{name}",
            ),
        )


def _is_notebook_alone(module: str) -> bool:
    """Return whether the project has a notebook by the name of a module, and no such module."""
    files = [root / module.replace(".", "/") for root in project_roots()]
    has_module = any(file.with_suffix(".py").is_file() or file.is_dir() for file in files)
    return not has_module and any(file.with_suffix(".ipynb").is_file() for file in files)


def _refuse_suspended(function: Any, path: str) -> None:
    """Refuse a function whose call runs none of its lines: a generator, or one that is to be awaited.

    Raises:
        ConfigError: Says which of them it is.
    """
    why = why_suspended(function) or why_suspended(type(function).__call__)  # of an object, its method
    if why is not None:
        hints = {
            GENERATOR: "Report with ray.train.report(...) instead.",
            ASYNC: "Use a function that runs it: def train(config): asyncio.run(...)",
        }
        raise ConfigError(f"trainer.train_loop: {path} {why}: calling it does not train.", hints[why])


def _check_arguments(function: Any, arguments: Mapping[str, Any], path: str, where: str = "trainer.arguments") -> None:
    """Find out whether a function has these arguments, and whether they may be of these types.

    Raises:
        TargetError: It hasn't, or they can't; names the argument.
    """
    parameters = parameters_of(function)
    if parameters is None:
        return
    by_name = {name: one for name, one in parameters.items() if one.kind is not one.POSITIONAL_ONLY}
    check_names_known(by_name, list(arguments), where, path)
    check_types(by_name, arguments, where, by_default=False)


def _check_rows_suffice(job: Job) -> None:
    """Refuse more workers than a data set has rows that they are to share: Ray would give none to any of them.

    Raises:
        ConfigError: Names the data set.
    """
    if job.dataset is None or not job.conf.datasets:
        return
    num_workers = job.conf.scaling.min_workers
    shared = shared_splits(job.dataset, job.conf.trainer.datasets_to_split)
    for name in shared:
        count = job.dataset.splits[name].num_rows
        if count < num_workers:
            others = ",".join(one for one in shared if one != name)
            raise ConfigError(
                f"{num_workers} workers can't share {count} rows of the data set '{name}'.",
                to_try(f"'trainer.datasets_to_split=[{others}]'", f"each worker has all of '{name}'"),
            )


def _check_config_taken(job: Job, function: Any) -> None:
    """Refuse what the command line, or a sweep, sets in a config that the train loop does not take.

    Raises:
        TargetError: Names the first key.
        ConfigError: The loop needs more than one argument.
    """
    if config_parameter(function, job.conf.trainer.arguments) is not None:
        return
    set_keys = sorted(key for key in job.typed if key.startswith("trainer.train_loop_config."))
    if set_keys:
        problem, hint = _not_taken(job, function)
        raise TargetError(set_keys[0], problem, f"{hint}.")


def config_not_taken(job: Job) -> list[str]:
    """Return a line if there is a config that a job's train loop does not take, as Ray decides it."""
    conf = job.conf.trainer
    if not conf.train_loop_config:
        return []
    function = job.builder.locate_function(conf.train_loop, "trainer.train_loop")
    if config_parameter(function, conf.arguments) is not None:
        return []
    return [f"trainer.train_loop_config {'. '.join(_not_taken(job, function))}"]


def _not_taken(job: Job, function: Any) -> tuple[str, str]:
    """Return why keys of the config have no effect, and what gives them one."""
    path = job.conf.trainer.train_loop
    return (
        f"has no effect: {path} needs no argument",
        f"The config is passed to a parameter without a default: def {getattr(function, '__name__', 'train')}(config)",
    )


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
            f"trainer.train_loop: {name} {problem}; a train loop takes no argument, or one config.",
            "Pass the others by name: trainer.arguments={" + f"{needed[-1].name}: ...}}",
        )
    return needed[0] if needed else None
