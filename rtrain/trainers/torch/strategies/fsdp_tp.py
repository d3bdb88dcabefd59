"""Groups of ranks split each layer, and the groups share the weights."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies import fsdp, tp
from rtrain.trainers.torch.strategies.blocks import recompute_activations
from rtrain.trainers.torch.strategies.sharded import Sharded


class FSDPTP(Sharded):
    """A mesh of two dimensions: tensor parallelism between ``tp_size`` ranks side by side, FSDP between such groups."""

    def __init__(self, conf: Conf, ranks: TorchRanks) -> None:
        super().__init__(conf, ranks)
        num_groups = conf.num_with_own_rows(ranks.size)
        shape = (num_groups, ranks.size // num_groups)
        self._mesh = _mesh(dist.group.WORLD, ranks.device.type, shape)

    @property
    def data(self) -> TorchRanks:
        """The place of this rank's group among the groups."""
        across = self._mesh["dp"]
        counts = self._mesh["tp"].get_local_rank() == 0
        rank, size, group = across.get_local_rank(), across.size(), across.get_group()
        return TorchRanks(rank, size, self.ranks.device, group, counts)

    @classmethod
    def check_model(cls, model: nn.Module, conf: Conf, num_workers: int) -> None:
        """Find out whether ``blocks`` and the plan fit the model, and all weights can be shared."""
        super().check_model(model, conf, num_workers)
        fsdp.refuse_scalars(model, conf.strategy)
        num_ranks = num_workers // conf.num_with_own_rows(num_workers)
        tp.check_plan(model, tp.plan_of(model, conf, num_ranks), num_ranks)

    def place(self, model: nn.Module) -> nn.Module:
        """Split the layers inside of each group first, then shard the parts between the groups."""
        options = self.conf.strategy_options
        fsdp.refuse_scalars(model, self.conf.strategy)
        recompute_activations(model, options)
        model.to(self.ranks.device)
        inside = self._mesh["tp"]
        tp.split(model, inside, tp.plan_of(model, self.conf, inside.size()))
        fsdp.shard(model, self._mesh["dp"], options)
        return model

    def hold(self) -> Any:
        """Keep the gradients of the group until the last pass."""
        return fsdp.without_exchange(self._model)


@lru_cache(maxsize=1)
def _mesh(_: Any, device_type: str, shape: tuple[int, int]) -> DeviceMesh:
    """Return the mesh of a world of processes: one that trains many runs would have more groups with each.

    They can't be destroyed instead: torch remembers the layouts of tensors by mesh, with the groups of the first one.
    """
    return init_device_mesh(device_type, shape, mesh_dim_names=("dp", "tp"))


STRATEGY = FSDPTP
