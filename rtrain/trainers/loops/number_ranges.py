"""Numbers that no optimizer or schedule can do anything sensible with, whatever the framework; libraries take many."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.errors import TargetError

RATES = ("lr", "learning_rate", "initial_learning_rate", "max_lr", "base_lr", "min_lr", "eta_min", "peak_value")
FROM_0 = (
    *RATES,
    *("weight_decay", "eps", "epsilon", "adam_epsilon", "momentum", "warmup_target", "max_norm", "max_grad_norm"),
    *("num_warmup_steps", "warmup_steps", "warmup_ratio", "gamma", "factor", "final_share", "decay_rate", "end_factor"),
    *("clipnorm", "clipvalue", "global_clipnorm", "label_smoothing_factor"),
)
"""Arguments that are 0 or more."""
FROM_1 = (
    *("T_max", "T_0", "T_mult", "total_iters", "total_steps", "num_training_steps", "decay_steps", "first_decay_steps"),
    *("transition_steps", "steps_per_epoch", "step_size_up", "step_size_down"),
)
"""Arguments that count steps of which there has to be one."""
SHARES = ("betas", "beta1", "beta2", "b1", "b2", "beta_1", "beta_2", "adam_beta1", "adam_beta2")
"""Arguments that are at least 0 and below 1, alone or in a list."""


def check_numbers(node: Any, where: str, names: Collection[str] | None = None) -> None:
    """Refuse a number that can't be, at any depth.

    Args:
        node: A part of the config.
        where: Its key.
        names: Arguments to look at; None: all.

    Raises:
        TargetError: Names the key, the value, and what is possible.
    """
    for key, name, value in _numbers(node, where):
        possible = None if names is not None and name not in names else _possible(name, value)
        if possible is not None:
            raise TargetError(key, f"must be {possible}, not {as_written(value)}")


def _possible(name: str, value: float) -> str | None:
    """Return what an argument has to be, if it is not."""
    if not math.isfinite(value):
        return "a finite number"
    if name in SHARES and not 0 <= value < 1:
        return "at least 0 and below 1"
    if name in FROM_0 and value < 0:
        return "at least 0"
    return "at least 1" if name in FROM_1 and value < 1 else None


def _numbers(node: Any, where: str) -> Iterator[tuple[str, str, float]]:
    """Yield the key, the name and the value of each number; what a list holds has the list's name."""
    name = where.rpartition(".")[2].partition("[")[0]
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _numbers(value, f"{where}.{key}")
    elif isinstance(node, list | tuple):
        for place, value in enumerate(node):
            yield from _numbers(value, f"{where}[{place}]")
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield where, name, node
