"""Names of arguments and fields that switch a Flax module between training and evaluation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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
        ConfigError: A parameter that is not a mode has no default.
    """
    parameters = list(inspect.signature(kind.__call__).parameters.values())[2:]
    needed = [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and one.name not in MODES
    ]
    if needed:
        raise ConfigError(
            f"trainer.model: {kind.__name__}.__call__ needs {', '.join(needed)}, but it gets only rows and its mode.",
            f"Give it a default, or name the mode one of {', '.join(MODES)}.",
        )
    return {one.name: one for one in parameters}


def arguments_of(parameters: Mapping[str, inspect.Parameter], values: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return ``values`` as arguments of a call, by position where the call wants that, and by name."""
    by_position = {
        name: values.get(name, one.default) for name, one in parameters.items() if one.kind is one.POSITIONAL_ONLY
    }
    return list(by_position.values()), {name: one for name, one in values.items() if name not in by_position}


def is_switch(value: Any) -> bool:
    """Return whether a value may be that of a mode: a boolean, 0, 1, or None."""
    return value is None or (isinstance(value, int) and value in (0, 1))


def other_values(value: Any) -> Sequence[Any]:
    """Return what may mean training where ``value`` means an evaluation."""
    if value is None:
        return True, False, "train"
    if isinstance(value, str):
        return "train", "training"
    return (not value,) if is_switch(value) else ()


def hidden_mode(values: Mapping[str, Any], is_training: Callable[[str, Any], bool]) -> str | None:
    """Return what is a mode by its effect: another value makes the module train in an evaluation.

    Args:
        values: Arguments and fields that nothing sets, by name.
        is_training: Tells whether an evaluation with another value of a name draws random numbers or changes state.
    """
    return next(
        (name for name, value in values.items() if any(is_training(name, one) for one in other_values(value))), None
    )


def modes_by_keyword(
    parameters: Mapping[str, inspect.Parameter], is_training: Callable[[str, bool], bool]
) -> list[str]:
    """Return the modes that a call takes through ``**keywords``, by their effect.

    Args:
        parameters: Those of the call.
        is_training: Tells whether an evaluation with a value of a name draws random numbers or changes state.
    """
    if all(one.kind is not one.VAR_KEYWORD for one in parameters.values()):
        return []
    free = [name for name in MODES if name not in parameters]
    return [name for name in free if is_training(name, MODES[name]) and not is_training(name, not MODES[name])]


def dropout_rate(layer: Any) -> float:
    """Return the share that a layer of Flax drops: one of dropout, or of attention; the latter has no ``rate``."""
    rate: float = layer.rate if hasattr(layer, "rate") else layer.dropout_rate
    return rate
