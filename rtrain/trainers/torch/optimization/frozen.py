"""Weights that were frozen when training was prepared: optimizers and ``DistributedDataParallel`` left them out."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from rtrain.errors import TrainingError
from rtrain.trainers.torch.optimization.unused import KEY

MOST_NAMED = 3
LATER = (
    "Leave them trainable in the model, and freeze them in train_begin of a callback: with several workers, "
    "{key}=true belongs to that."
)


class Frozen:
    """The weights of a model that are frozen now.

    Args:
        model: Before its first step.
        key: What allows steps that leave weights out.
    """

    def __init__(self, model: nn.Module, key: str = KEY) -> None:
        self._hint = LATER.format(key=key)
        self._weights = [(name, weight) for name, weight in model.named_parameters() if not weight.requires_grad]

    def check(self, optimizer: Optimizer | None, hint: str | None = None) -> None:
        """Look at the gradients of a step, before the weights move.

        Args:
            optimizer: What moves them, if one rank trains alone: one that was given them since may.
            hint: What to do; None: to freeze them later.

        Raises:
            TrainingError: One of the weights is trained now.
        """
        thawed = [(name, one) for name, one in self._weights if one.requires_grad and one.grad is not None]
        if not thawed:
            return
        groups = [] if optimizer is None else optimizer.param_groups
        moved = {id(weight) for group in groups for weight in group["params"]}
        names = [name for name, weight in thawed if id(weight) not in moved]
        if names:
            shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
            becomes = "workers would not average its gradients" if optimizer is None else "the optimizer lacks it"
            raise TrainingError(
                f"{shown}: frozen when training was prepared, trained now; {becomes}.", hint or self._hint
            )
