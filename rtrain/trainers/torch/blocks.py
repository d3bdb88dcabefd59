"""The parts of a model that are sharded, or computed a second time to save memory, one by one."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from rtrain.errors import ConfigError
from rtrain.trainers.torch.config import StrategyConf


def blocks_of(model: nn.Module, options: StrategyConf) -> list[nn.Module]:
    """Return the model's blocks: the modules that ``options.blocks`` names, else the members of each ``ModuleList``.

    Raises:
        ConfigError: A pattern names no module.
    """
    if not options.blocks:
        return [member for module in model.modules() if isinstance(module, nn.ModuleList) for member in module]
    found: dict[str, nn.Module] = {}
    for pattern in options.blocks:
        named = {name: module for name, module in model.named_modules() if name and fnmatchcase(name, pattern)}
        if not named:
            some = ", ".join(name for name, _ in model.named_modules() if name)
            raise ConfigError(f"trainer.strategy_options.blocks: no module is called {pattern}; there are: {some}.")
        found |= named
    return list(found.values())


def recompute_activations(model: nn.Module, options: StrategyConf) -> None:
    """Let every n-th block compute its activations again in the backward pass, instead of keeping them.

    Chen et al., "Training deep nets with sublinear memory cost" (2016).
    """
    for block in recomputed_blocks(model, options):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def recomputed_blocks(model: nn.Module, options: StrategyConf) -> list[nn.Module]:
    """Return the blocks whose activations are not kept.

    Raises:
        ConfigError: There are none, but there should be.
    """
    blocks, every = blocks_of(model, options), options.activation_checkpointing
    if every is None:
        return []
    if not blocks:
        raise ConfigError(
            f"trainer.strategy_options.activation_checkpointing: {type(model).__name__} has no ModuleList of blocks.",
            "Name its blocks: trainer.strategy_options.blocks=[layers.*]",
        )
    return blocks[every - 1 :: every]
