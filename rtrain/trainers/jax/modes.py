"""Names of arguments and fields that switch a Flax module between training and evaluation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rtrain.errors import ConfigError

MODES = {
    **dict.fromkeys(("train", "training", "is_train", "is_training", "train_mode", "training_mode"), True),
    **dict.fromkeys(("deterministic", "use_running_average"), False),
    **dict.fromkeys(("eval", "evaluate", "is_eval", "eval_mode", "evaluation", "test", "testing", "is_test"), False),
    **dict.fromkeys(("inference", "inference_mode", "is_inference"), False),
}
"""The names, and their values in training."""


def mode_of(names: Any, training: bool) -> dict[str, bool]:
    """Return the values of those of ``names`` that are a mode."""
    return {name: training == means for name, means in MODES.items() if name in names}


def call_parameters(kind: type) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a module's call, without the rows.

    Raises:
        ConfigError: One that is no mode has no default.
    """
    parameters = list(inspect.signature(kind.__call__).parameters.values())[2:]
    needed = [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and one.name not in MODES
    ]
    if needed:
        raise ConfigError(
            f"trainer.model: {kind.__name__}.__call__ needs {', '.join(needed)}, but it gets rows and its mode alone.",
            f"Give it a default, or call the mode one of {', '.join(MODES)}.",
        )
    return {one.name: one for one in parameters}


def hidden_mode(values: Mapping[str, Any], is_training: Callable[[str, bool], bool]) -> str | None:
    """Return the boolean that is a mode by its effect: its other value makes the module train in an evaluation.

    Args:
        values: Arguments and fields that nothing sets, by name.
        is_training: Tells whether an evaluation with another value of a name draws random numbers or changes state.
    """
    flags = {name: value for name, value in values.items() if isinstance(value, bool)}
    return next((name for name, value in flags.items() if is_training(name, not value)), None)
