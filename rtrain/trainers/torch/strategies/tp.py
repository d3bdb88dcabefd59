"""Every rank computes a part of each layer, for the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import groupby

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from rtrain.errors import ConfigError
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies.blocks import recompute_activations
from rtrain.trainers.torch.strategies.sharded import Sharded

PLAN = "trainer.strategy_options.tp_plan"
STYLES = ("colwise", "rowwise", "colwise_gather")


class TP(Sharded):
    """Tensor parallelism over all ranks: torch's ``parallelize_module`` with the plan of the config or of the model.

    Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model parallelism" (2019).
    """

    def __init__(self, conf: Conf, ranks: TorchRanks) -> None:
        super().__init__(conf, ranks)
        self._mesh = init_device_mesh(ranks.device.type, (ranks.size,), mesh_dim_names=("tp",))

    @property
    def data(self) -> TorchRanks:
        """One place for all ranks: they have the same rows."""
        return TorchRanks(0, 1, self.ranks.device, counts=self.ranks.rank == 0)

    @classmethod
    def check_model(cls, model: nn.Module, conf: Conf, num_workers: int) -> None:
        """Find out whether the plan fits the model."""
        super().check_model(model, conf, num_workers)
        check_plan(model, plan_of(model, conf, num_workers), num_workers)

    def place(self, model: nn.Module) -> nn.Module:
        """Leave this rank's part of each layer in the plan on its device, and all of the others."""
        recompute_activations(model, self.conf.strategy_options)
        model.to(self.ranks.device)
        split(model, self._mesh, plan_of(model, self.conf, self.ranks.size))
        return model


def plan_of(model: nn.Module, conf: Conf, num_ranks: int) -> Mapping[str, str]:
    """Return how each layer is split: what the config says, else what the model itself does.

    Raises:
        ConfigError: Neither says it, or the model can't be split between so many ranks.
    """
    if conf.strategy_options.tp_plan:
        return conf.strategy_options.tp_plan
    own = getattr(model, "tensor_parallel_plan", None)
    if own is None:
        raise ConfigError(
            f"{PLAN}: {type(model).__name__} has no method tensor_parallel_plan, so the config must define the plan.",
            f"List its layers, each with one of {', '.join(STYLES)}: {PLAN}={{layers.0: colwise, layers.2: rowwise}}",
        )
    try:
        plan: Mapping[str, str] = own(num_ranks)
    except ValueError as error:
        raise ConfigError(f"trainer.strategy={conf.strategy}: {error}.") from error
    return plan


def check_plan(model: nn.Module, plan: Mapping[str, str], num_ranks: int) -> None:
    """Check that each pattern names layers, and that they can be split evenly.

    Raises:
        ConfigError: Names the pattern.
    """
    modules = dict(model.named_modules())
    for pattern, style in plan.items():
        if style not in STYLES:
            raise ConfigError(f"{PLAN}.{pattern}: must be one of: {', '.join(STYLES)}, not {style!r}")
        named = {name: module for name, module in modules.items() if fnmatchcase(name, pattern)}
        if not named:
            some = ", ".join(name for name, module in modules.items() if isinstance(module, nn.Linear | nn.Embedding))
            raise ConfigError(f"{PLAN}: no module is named {pattern}; layers that can be split: {some}.")
        for name, module in named.items():
            _check_layer(f"{PLAN}: {name}", module, style, num_ranks)


def _check_layer(where: str, module: nn.Module, style: str, num_ranks: int) -> None:
    if isinstance(module, nn.Embedding):
        return
    if not isinstance(module, nn.Linear):
        raise ConfigError(f"{where} is a {type(module).__name__}; only Linear and Embedding can be split.")
    side, size = ("inputs", module.in_features) if style == "rowwise" else ("outputs", module.out_features)
    if style != "colwise_gather" and size % num_ranks != 0:
        raise ConfigError(f"{where} has {size} {side}, which {num_ranks} workers can't split evenly.")


def split(model: nn.Module, mesh: DeviceMesh, plan: Mapping[str, str]) -> None:
    """Split the layers of the plan over ``mesh``, in place; layers that shared a weight share it afterwards.

    Raises:
        ConfigError: Two layers share a weight, but are split in different ways.
    """
    shared = _shared_weights(model)
    styles = {
        name: _style(module, style)
        for pattern, style in plan.items()
        for name, module in model.named_modules()
        if fnmatchcase(name, pattern)
    }
    parallelize_module(model, mesh, styles)
    for first, *others in shared:
        kept = model.get_parameter(first)
        for name in others:
            if getattr(model.get_parameter(name), "placements", None) != getattr(kept, "placements", None):
                raise ConfigError(f"{PLAN}: {first} and {name} share a weight; split both in the same way, or neither.")
            owner, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(owner), attribute, kept)


def _shared_weights(model: nn.Module) -> list[list[str]]:
    """Return the names of each weight that has several."""
    named = sorted(model.named_parameters(remove_duplicate=False), key=lambda pair: id(pair[1]))
    groups = [[name for name, _ in same] for _, same in groupby(named, key=lambda pair: id(pair[1]))]
    return [names for names in groups if len(names) > 1]


def _style(module: nn.Module, name: str) -> ParallelStyle:
    if name == "colwise_gather":
        return ColwiseParallel(output_layouts=Replicate())
    if name == "colwise":
        return ColwiseParallel()
    return RowwiseParallel(input_layouts=Replicate()) if isinstance(module, nn.Embedding) else RowwiseParallel()


STRATEGY = TP
