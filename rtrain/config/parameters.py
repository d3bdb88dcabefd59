"""The parameters of the framework that a trainer hands on: under which key each can be set."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig

from rtrain.config.allowed import FRAMEWORKS
from rtrain.config.targets import locate
from rtrain.errors import ConfigError


def parameters_of(conf: type | None, trainer: Any) -> dict[str, str]:
    """Return the full key of each parameter of the framework, by its name; imports the framework.

    Args:
        conf: The trainer's dataclass of keys; its ``parameters`` tells those of the library itself.
        trainer: The section of the composed config, whose targets have arguments.
    """
    found: dict[str, str] = dict(_of_targets(trainer)) if isinstance(trainer, DictConfig) else {}
    library = getattr(conf, "parameters", None)
    return {**(library() if library is not None else {}), **found}


def _of_targets(trainer: DictConfig) -> Iterator[tuple[str, str]]:
    for name in trainer:
        node = trainer._get_node(name)
        target = node.get("_target_") if isinstance(node, DictConfig) else None
        if isinstance(target, str) and target.partition(".")[0] in FRAMEWORKS:
            for argument in _arguments(target):
                yield argument, f"trainer.{name}.{argument}"


def _arguments(target: str) -> list[str]:
    """Return the names of the arguments of a framework's class; none where it doesn't tell."""
    try:
        parameters = inspect.signature(locate(target, "_target_", ())).parameters.values()
    except (ConfigError, ValueError, TypeError):
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in parameters if one.kind in named and one.name not in ("self", "params")]
