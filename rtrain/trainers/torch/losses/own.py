"""Custom losses: modules, or functions of (output, target)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.loops.auto import fill_from_dataset

TENSORS = ("weight", "pos_weight")
"""Arguments of torch's losses that are tensors, and lists or numbers in a config."""
REDUCTION = "reduction"


class FunctionLoss(nn.Module):
    """A function of (output, target) as a module; its ``reduction`` is the function's, if that has one."""

    def __init__(self, function: Callable[..., Tensor], arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self._function, self._arguments = function, dict(arguments)
        default = inspect.signature(function).parameters.get(REDUCTION)
        if default is not None:
            self.reduction = self._arguments.pop(REDUCTION, default.default)

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """Call the function."""
        more = {REDUCTION: self.reduction} if hasattr(self, REDUCTION) else {}
        return self._function(output, target, **self._arguments, **more)


def is_function(node: Mapping[str, Any], builder: Builder) -> bool:
    """Return whether ``node`` names the loss itself: a function that lacks two arguments, not one that makes a loss."""
    if "_args_" in node or not isinstance(node.get("_target_"), str):
        return False
    kind = builder.locate(node["_target_"], "trainer.loss._target_")
    if not inspect.isfunction(kind):
        return False
    first = list(inspect.signature(kind).parameters.values())
    lacking = [one for one in first if one.default is one.empty and one.name not in node and one.kind <= 1]
    return len(lacking) == 2 and lacking == first[:2]


def own_loss(node: Mapping[str, Any], info: DatasetInfo, builder: Builder) -> nn.Module:
    """Build the loss that ``node`` names; the numbers that losses of torch keep as tensors become such.

    Raises:
        ConfigError: It is neither a module nor a function of (output, target).
    """
    node = fill_from_dataset(node, info, "trainer.loss")
    kind = builder.locate(str(node["_target_"]), "trainer.loss._target_")
    if is_function(node, builder):
        made = builder.build({**node, "_partial_": True}, "trainer.loss")
        called = {"__module__": kind.__module__, "__doc__": kind.__doc__}  # messages name it, checks know torch's own
        function: nn.Module = type(kind.__name__, (FunctionLoss,), called)(made.func, made.keywords)
        return function
    names = TENSORS if isinstance(kind, type) and issubclass(kind, nn.modules.loss._Loss) else ()
    numbers = {name: node[name] for name in names if isinstance(node.get(name), list | int | float)}
    tensors = {name: torch.tensor(value, dtype=torch.float32) for name, value in numbers.items()}
    loss = builder.build(node, "trainer.loss", **tensors)
    if not isinstance(loss, nn.Module):
        raise ConfigError(
            f"trainer.loss: {node['_target_']} returns a {type(loss).__name__}, not a torch.nn.Module.",
            "Use a module class, or a function of (output, target), without _partial_.",
        )
    return loss


def untrained(loss: nn.Module) -> str:
    """Return a notice of weights of the loss, which no optimizer gets; an empty string if it has none to train."""
    names = [name for name, weight in loss.named_parameters() if weight.requires_grad]
    if not names:
        return ""
    return (
        f"trainer.loss: the optimizer trains only the weights of trainer.model; {len(names)} of {type(loss).__name__}, "
        f"such as {names[0]}, stay as they are. To train them, use a custom trainer.train_loop; otherwise, "
        "requires_grad_(False) silences this"
    )
