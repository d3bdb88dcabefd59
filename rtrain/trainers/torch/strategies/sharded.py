"""What the strategies share whose ranks hold parts of the weights only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from rtrain.runs.checkpoints import Writer
from rtrain.trainers.torch.checkpoint import shards
from rtrain.trainers.torch.checkpoint.state import WEIGHTS, TrainState, whole_weights
from rtrain.trainers.torch.strategies.base import Strategy


class Sharded(Strategy):
    """Weights are ``DTensor``s, and checkpoints have one file per rank."""

    sharded = True
    refused: ClassVar[dict[str, Any]] = {
        "ema_decay": None,
        "compile": False,
        "channels_last": False,
        "sync_batchnorm": False,
        "find_unused_parameters": False,
    }

    def wrap(self, state: TrainState) -> nn.Module:
        """Return the model itself: its layers gather weights, or exchange what they compute."""
        self._model = state.model
        return state.model

    def split_groups(self, optimizer: Optimizer) -> None:
        """Make one group for each mesh: optimizers compute on all of a group together, and can't mix meshes."""
        groups = list(optimizer.param_groups)
        optimizer.param_groups[:] = [{**group, "params": part} for group in groups for part in by_mesh(group["params"])]

    def is_finite(self, parameters: Sequence[nn.Parameter], norm: Tensor | float | None) -> bool:
        """Return whether the parts of all ranks are finite."""
        return not self.ranks.max([float(not super().is_finite(parameters, norm))])[0]

    def clip(self, parameters: Sequence[nn.Parameter]) -> float | None:
        """Bring the gradients into the limit, as torch.nn.utils does, which can't take those of several meshes."""
        gradients, norm = [parameter.grad for parameter in parameters if parameter.grad is not None], None
        if self.conf.clip_norm is not None:
            norm = global_norm(gradients)
            factor = min(1.0, self.conf.clip_norm / (norm + 1e-6))
            for gradient in gradients:
                gradient.mul_(factor)
        if self.conf.clip_value is not None:
            for gradient in gradients:
                gradient.clamp_(-self.conf.clip_value, self.conf.clip_value)
        return norm

    def snapshot(self, state: TrainState) -> Writer:
        """Copy this rank's parts; the first rank also writes the rest, and the whole weights if they are wanted."""
        assert self.savers is not None
        write = shards.snapshot(state, self.savers.group)

        def write_all(folder: Path) -> None:
            write(folder)
            if self.conf.strategy_options.consolidate and self.ranks.rank == 0:
                shards.consolidate(folder, folder / WEIGHTS)

        return write_all

    def load(self, state: TrainState, folder: Path) -> None:
        """Take the parts of this rank, however many ranks wrote them."""
        shards.load(state, folder, self.ranks.device)

    def init(self, state: TrainState, folder: Path) -> None:
        """Take this rank's parts of the weights, whatever strategy wrote them."""
        path = whole_weights(folder)
        if path is None:
            shards.load_weights(state.model, folder)
        else:
            shards.take_parts(state.model, path)


def by_mesh(tensors: Sequence[Any]) -> list[list[Any]]:
    """Return the tensors in groups of one device mesh each, those without one first."""
    groups: dict[Any, list[Any]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.device_mesh if isinstance(tensor, DTensor) else None, []).append(tensor)
    return [groups[mesh] for mesh in sorted(groups, key=lambda mesh: mesh is not None)]


def global_norm(gradients: Sequence[Tensor]) -> float:
    """Return the 2-norm of all gradients together; every part of each counts once. Every rank calls it."""
    norms = [torch.nn.utils.get_total_norm(group) for group in by_mesh(gradients)]
    whole = [norm.full_tensor() if isinstance(norm, DTensor) else norm for norm in norms]
    return math.hypot(*(float(norm) for norm in whole))
