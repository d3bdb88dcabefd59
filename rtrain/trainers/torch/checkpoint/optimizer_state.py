"""State of an optimizer, as a checkpoint gives it: torch's compiled steps write where it says, and check little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from rtrain.errors import CheckpointError

OF_OTHER_SHAPES = ("Adafactor", "LBFGS")
"""Optimizers of torch's that keep tensors of other shapes than the weights'; they have no compiled step."""


def checked_state(optimizer: Optimizer, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``optimizer.load_state_dict`` may take.

    Args:
        optimizer: Of the config: its flags stay, the numbers that training changes (rates, momenta) don't.
        stored: What ``state_dict`` returned then.

    Raises:
        CheckpointError: It is of another model, or a tensor in it has another shape than its weight.
    """
    groups = stored["param_groups"]
    if [len(one["params"]) for one in groups] != [len(one["params"]) for one in optimizer.param_groups]:
        raise CheckpointError("the checkpoint's optimizer has other weights than the one in the config.")
    ids = [number for group in groups for number in group["params"]]
    weights = dict(zip(ids, (one for group in optimizer.param_groups for one in group["params"]), strict=True))
    state = {
        number: _checked(optimizer, weights[number], of_one) if number in weights else of_one
        for number, of_one in stored["state"].items()
    }
    taken = checked_groups(optimizer, groups)
    return {**stored, "state": state, "param_groups": taken}


def checked_groups(optimizer: Optimizer, stored: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the optimizer's groups with the numbers of ``stored``; what chooses the way of computing stays."""
    return [
        {key: then[key] if key in then and _may_replace(then[key], now) else now for key, now in group.items()}
        | ({"params": then["params"]} if "params" in then else {})
        for group, then in zip(optimizer.param_groups, stored, strict=True)
    ]


def check_tensor(optimizer: Optimizer, weight: Tensor, name: str, value: Any) -> None:
    """Check a part of the state of ``weight``.

    Raises:
        CheckpointError: It is a tensor of another shape than the weight, and of more dimensions than none.
    """
    kind = type(optimizer)
    if not kind.__module__.startswith("torch.optim") or kind.__name__ in OF_OTHER_SHAPES:
        return
    if isinstance(value, Tensor):
        plain = value.layout == torch.strided and not value.is_quantized
        if plain and value.shape in (weight.shape, ()):
            return
    elif value is None or isinstance(value, int | float):
        return
    raise CheckpointError(
        f"the checkpoint's optimizer has a {name} of shape {tuple(getattr(value, 'shape', ()))} for a weight of shape "
        f"{tuple(weight.shape)}."
    )


def _checked(optimizer: Optimizer, weight: Tensor, stored: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in stored.items():
        check_tensor(optimizer, weight, name, value)
    return {name: _laid_out(weight, value) for name, value in stored.items()}


def _laid_out(weight: Tensor, value: Any) -> Any:
    """Return a tensor with as much memory as it has numbers, laid out as its weight is."""
    if not isinstance(value, Tensor) or value.shape != weight.shape or value.stride() == weight.stride():
        return value
    return torch.empty_like(weight, dtype=value.dtype, device=value.device, requires_grad=False).copy_(value)


def _may_replace(then: Any, now: Any) -> bool:
    """Return whether both are numbers, or as many of them."""
    if isinstance(now, list | tuple):
        same = isinstance(then, list | tuple) and len(then) == len(now)
        return same and all(map(_may_replace, then, now))
    return _is_number(then) and _is_number(now)


def _is_number(value: Any) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, Tensor) and value.ndim == 0
    )
