"""The parameters of the framework that a trainer hands on: under which key each can be set."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig

from rtrain.config.targets.allow_list import FRAMEWORKS
from rtrain.config.targets.argument_types import parameters_of
from rtrain.config.targets.builder import Builder
from rtrain.config.targets.silenced import silenced
from rtrain.errors import ConfigError


def library_of(conf: type | None) -> Mapping[str, str]:
    """Return the full key of each parameter of a trainer's library, by its name, as its dataclass tells them."""
    tell = getattr(conf, "parameters", None)
    return tell() if tell is not None else {}


def targets_of(trainer: Any) -> list[tuple[str, str]]:
    """Return (key, ``_target_``) of each part of a trainer's section that is built by one, then of what is in these."""
    parts = list(_built_in("trainer", trainer))
    return [*((key, target) for key, target, _ in parts), *_inner(parts)]


def _inner(parts: list[tuple[str, str, DictConfig]]) -> Iterator[tuple[str, str]]:
    for key, _, node in parts:
        yield from ((inner, target) for inner, target, _ in _built_in(key, node))


def _built_in(key: str, node: Any) -> Iterator[tuple[str, str, DictConfig]]:
    """Yield (key, ``_target_``, node) of what is built right below a node."""
    for name in map(str, node) if isinstance(node, DictConfig) else ():
        child = node._get_node(name)
        if isinstance(child, DictConfig) and isinstance(target := child.get("_target_"), str):
            yield f"{key}.{name}", target, child


def arguments_of(trainer: Any) -> dict[str, str]:
    """Return the full key of each argument of the targets in a trainer's section, by its name; imports frameworks."""
    return {
        argument: f"{key}.{argument}"
        for key, target in reversed(targets_of(trainer))  # the outer ones win
        if target.partition(".")[0] in FRAMEWORKS
        for argument in _arguments(target)
    }


def may_take(target: str | None, name: str) -> bool:
    """Return whether a target may have an argument called ``name``; true where a class of a framework doesn't tell."""
    parameters = _parameters(target) if target is not None and _of_framework(target) else []
    takes_any = not parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    return takes_any or any(one.name == name for one in parameters)


def takes(target: str, name: str) -> bool:
    """Return whether a target of a framework has an argument of just this name."""
    return _of_framework(target) and name in _arguments(target)


def of_project(target: str) -> bool:
    """Return whether a target is the project's own. Its arguments stay unknown: to learn them would import it."""
    return bool(target) and not _of_framework(target)


def _of_framework(target: str) -> bool:
    return target.partition(".")[0] in FRAMEWORKS


def _parameters(target: str) -> list[inspect.Parameter]:
    """Return the parameters of a framework's class; none where it doesn't tell."""
    try:
        with silenced():
            found = Builder().locate(target, "_target_")
    except ConfigError:
        return []
    return list((parameters_of(found) or {}).values())


def _arguments(target: str) -> list[str]:
    """Return the names of the arguments of a framework's class; none where it doesn't tell."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in _parameters(target) if one.kind in named and one.name not in ("self", "params")]
