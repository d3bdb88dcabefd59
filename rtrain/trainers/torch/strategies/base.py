"""The contract of a strategy: how ranks share the work of a step, and what a checkpoint holds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from rtrain.runs.checkpoints import Writer
from rtrain.trainers.torch.checkpoint.process_group import CheckpointProcessGroup
from rtrain.trainers.torch.checkpoint.state import TrainState, load_weights, whole_weights
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.optimization.finite import are_finite
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies.blocks import recompute_activations, recomputed_blocks


class Strategy(ABC):
    """How the ranks share the work.

    ``place`` comes first, then the optimizer is built, then ``wrap``; all ranks call everything at the same time.

    Args:
        conf: The trainer's conf.
        ranks: All ranks.
    """

    refused: ClassVar[Mapping[str, Any]] = {}
    """Keys of the trainer that it can't follow, with the one value that each must have."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules that have to be installed."""
    install: ClassVar[str] = ""
    """Command that installs them."""
    sharded: ClassVar[bool] = False
    """Each rank holds a part of the weights, and writes it into checkpoints itself."""

    def __init__(self, conf: Conf, ranks: TorchRanks) -> None:
        self.conf, self.ranks = conf, ranks
        self.savers = CheckpointProcessGroup() if self.sharded else None
        """Ranks that write their parts."""

    @property
    def data(self) -> TorchRanks:
        """This rank among those that have their own rows."""
        return self.ranks

    @classmethod
    def check_model(cls, model: nn.Module, conf: Conf, num_workers: int) -> None:
        """Find what of a model, built without numbers on the meta device, can't be shared.

        Raises:
            ConfigError: Names the key.
        """
        recomputed_blocks(model, conf.strategy_options)

    def place(self, model: nn.Module) -> nn.Module:
        """Bring a new model, the same on every rank, to the device; what is split is split here."""
        recompute_activations(model, self.conf.strategy_options)
        return model.to(self.ranks.device)

    def num_parameters(self, model: nn.Module) -> int:
        """Return how many weights the whole model has."""
        return sum(parameter.numel() for parameter in model.parameters())

    @abstractmethod
    def wrap(self, state: TrainState) -> nn.Module:
        """Return the model as training calls it."""

    def hold(self) -> AbstractContextManager[Any]:
        """Return a context whose backward passes may leave out the exchange of gradients."""
        return nullcontext()

    def backward(self, state: TrainState, loss: Tensor) -> None:
        """Add the gradients of ``loss``, which ranks average, to the existing ones."""
        scaled: Tensor = state.scaler.scale(loss)
        torch.autograd.backward(scaled)

    def update(self, state: TrainState, *, skips: bool = False) -> bool:
        """Clip the gradients, move the weights on, and forget the gradients.

        Args:
            state: What moves on.
            skips: Leave the step out if a gradient is not finite.

        Returns:
            Whether the weights moved; the same on all ranks. fp16 leaves out steps whose scaled gradients overflow.
        """
        norm = None
        if self.conf.clip_norm is not None or self.conf.clip_value is not None:
            state.scaler.unscale_(state.optimizer)
            norm = self.clip(list(state.model.parameters()))
        checks = skips and not state.scaler.is_enabled()
        taken = (not checks or self.is_finite(list(state.model.parameters()), norm)) and self.step(state)
        state.optimizer.zero_grad(set_to_none=True)
        return taken

    def step(self, state: TrainState) -> bool:
        """Move the weights on; return whether they moved."""
        scale = state.scaler.get_scale()
        state.scaler.step(state.optimizer)
        state.scaler.update()
        # The scale shrinks whenever the scaler leaves a step out.
        return state.scaler.get_scale() >= scale

    def is_finite(self, parameters: Sequence[nn.Parameter], norm: Tensor | float | None) -> bool:
        """Return whether all gradients are finite; the same on all ranks, as they have the same gradients.

        Args:
            parameters: With gradients.
            norm: Of all gradients, if it is known.
        """
        if norm is not None:
            return math.isfinite(norm)
        return are_finite(parameter.grad for parameter in parameters if parameter.grad is not None)

    def clip(self, parameters: Sequence[nn.Parameter]) -> Tensor | float | None:
        """Bring the norm of all gradients, or the value of each, into its limit; the same on all ranks.

        Returns:
            The norm that they had, if it is limited.
        """
        if self.conf.clip_norm is not None:
            return nn.utils.clip_grad_norm_(parameters, self.conf.clip_norm)
        if self.conf.clip_value is not None:
            nn.utils.clip_grad_value_(parameters, self.conf.clip_value)
        return None

    def split_groups(self, optimizer: Optimizer) -> None:  # noqa: B027 - whole weights are of one kind
        """Split each group of a new optimizer into parameters that it can compute on together."""

    def snapshot(self, state: TrainState) -> Writer:
        """Copy the state, or this rank's part of it, and return what writes the copy; all ranks call it that write."""
        return state.snapshot()

    def load(self, state: TrainState, folder: Path) -> None:
        """Take a checkpoint back, also one that another number of ranks wrote."""
        state.load(folder, self.ranks)

    def init(self, state: TrainState, folder: Path) -> None:
        """Take only the weights of a checkpoint, whatever strategy wrote them; averaged ones if it has some.

        Raises:
            CheckpointError: They are not there, or belong to another model.
        """
        path = whole_weights(folder)
        for model in [state.model] if state.ema is None else [state.model, state.ema.module]:
            if path is None:
                # Half a second of imports, for sharded checkpoints only.
                from rtrain.trainers.torch.checkpoint.shards import load_weights as load_shards

                load_shards(model, folder, alone=True)
            else:
                load_weights(model, path, self.ranks.device)

    def close(self) -> None:
        """Give back what the process would keep."""
        if self.savers is not None:
            self.savers.close()
