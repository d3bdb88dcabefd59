"""Every rank holds a share of each weight, and gathers one block at a time to compute with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from rtrain.errors import ConfigError
from rtrain.text.enumeration import few
from rtrain.trainers.torch.config import Conf, StrategyConf
from rtrain.trainers.torch.evaluation import DTYPES
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies.blocks import blocks_of, innermost_first, recompute_activations
from rtrain.trainers.torch.strategies.sharded import Sharded

MOST_NAMED = 3


class FSDP(Sharded):
    """Fully sharded data parallelism: torch's ``fully_shard`` on each block and on the model.

    Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models" (2019), stage 3; Zhao et
    al., "PyTorch FSDP: experiences on scaling fully sharded data parallel" (2023).
    """

    def __init__(self, conf: Conf, ranks: TorchRanks) -> None:
        super().__init__(conf, ranks)
        self._mesh = init_device_mesh(ranks.device.type, (ranks.size,), mesh_dim_names=("dp",))

    @classmethod
    def check_model(cls, model: nn.Module, conf: Conf, num_workers: int) -> None:
        """Find weights that can't be shared."""
        super().check_model(model, conf, num_workers)
        refuse_scalars(model, conf.strategy)

    def place(self, model: nn.Module) -> nn.Module:
        """Leave this rank's share of each weight on its device."""
        recompute_activations(model, self.conf.strategy_options)
        refuse_scalars(model, self.conf.strategy)
        shard(model, self._mesh, self.conf.strategy_options)
        return model

    def hold(self) -> Any:
        """Keep whole gradients on every rank until the last pass."""
        return without_exchange(self._model)


def refuse_scalars(model: nn.Module, strategy: str) -> None:
    """Refuse weights without a dimension: each rank holds some rows of each weight.

    Raises:
        ConfigError: Names them.
    """
    scalars = [name for name, weight in model.named_parameters() if weight.ndim == 0]
    if scalars:
        raise ConfigError(
            f"trainer.strategy={strategy} shares the rows of each weight, which scalars don't have: "
            f"{few(scalars, MOST_NAMED)}.",
            f"Give them a dimension in {type(model).__name__}: nn.Parameter(torch.ones(1)).",
        )


def shard(model: nn.Module, mesh: DeviceMesh, options: StrategyConf) -> None:
    """Shard each block of the model, and then what is left of it, in place."""
    inner = MixedPrecisionPolicy(param_dtype=_dtype(options.param_dtype), reduce_dtype=_dtype(options.reduce_dtype))
    for block in innermost_first(blocks_of(model, options)):
        fully_shard(block, mesh=mesh, mp_policy=inner, reshard_after_forward=options.reshard_after_forward)
    # Losses are computed from float32.
    outer = replace(inner, output_dtype=None if inner.param_dtype is None else torch.float32)
    fully_shard(model, mesh=mesh, mp_policy=outer, reshard_after_forward=options.reshard_after_forward)


@contextmanager
def without_exchange(model: nn.Module) -> Iterator[None]:
    """Keep gradients where they are in the backward passes of the block."""
    assert isinstance(model, FSDPModule)
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def _dtype(name: str) -> torch.dtype | None:
    """Return the type; None, torch's word for that of the weights, for the usual one."""
    return None if name == "fp32" else DTYPES[name]


STRATEGY = FSDP
