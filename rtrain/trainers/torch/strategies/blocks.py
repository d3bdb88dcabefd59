"""The parts of a model that are sharded, or computed a second time to save memory, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from rtrain.errors import ConfigError
from rtrain.trainers.torch.config import StrategyConf


def blocks_of(model: nn.Module, options: StrategyConf) -> dict[str, nn.Module]:
    """Return the model's blocks by name, in the order of the model.

    They are the modules that ``options.blocks`` names, else the outermost members of ``ModuleList``s: what is inside of
    a block belongs to it, unless the config says otherwise. A member that is a container itself, without a ``forward``,
    is not a block; its members are.

    Raises:
        ConfigError: A pattern names no module, or one that can't be called.
    """
    if not options.blocks:
        found: dict[str, nn.Module] = {}
        for name, member in _members(model, ""):
            if not any(member is other for other in found.values()):
                found[name] = member
        return found
    named = {name: module for name, module in model.named_modules() if name}
    for pattern in options.blocks:
        matching = [name for name in named if matches(name, pattern)]
        if not matching:
            some = ", ".join(named)
            raise ConfigError(f"trainer.strategy_options.blocks: no module is named {pattern}; available: {some}.")
        for name in matching:
            if not _can_be_called(named[name]):
                kind = type(named[name]).__name__
                raise ConfigError(
                    f"trainer.strategy_options.blocks: {name} is a {kind}, which has no forward.",
                    f"Name its members: trainer.strategy_options.blocks=[{name}.*]",
                )
    return {name: one for name, one in named.items() if any(matches(name, pattern) for pattern in options.blocks)}


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern names a module: each part between dots is a pattern of one part of the name."""
    parts, patterns = name.split("."), pattern.split(".")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def innermost_first(blocks: Mapping[str, nn.Module]) -> list[nn.Module]:
    """Return blocks such that each comes after those inside of it."""
    return [blocks[name] for name in sorted(blocks, key=lambda name: -name.count("."))]


def _members(module: nn.Module, name: str, *, is_member: bool = False) -> Iterator[tuple[str, nn.Module]]:
    if is_member and _can_be_called(module):
        yield name, module
        return
    is_member = is_member or isinstance(module, nn.ModuleList)
    for inner, child in module.named_children():
        yield from _members(child, f"{name}.{inner}".lstrip("."), is_member=is_member)


def _can_be_called(module: nn.Module) -> bool:
    return type(module).forward is not nn.Module.forward


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
    blocks, every = list(blocks_of(model, options).values()), options.activation_checkpointing
    if every is None:
        return []
    if not blocks:
        raise ConfigError(
            f"trainer.strategy_options.activation_checkpointing: {type(model).__name__} has no ModuleList of blocks.",
            "Name its blocks: trainer.strategy_options.blocks=[layers.*]",
        )
    return blocks[every - 1 :: every]
