"""Flax modules, of linen and of nnx, as pure functions of their weights."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import flax.linen
from flax import nnx

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.jax.nets.linen import Linen
from rtrain.trainers.jax.nets.modes import mode_of
from rtrain.trainers.jax.nets.nnx import Nnx
from rtrain.trainers.loops.auto import channels_last_shape, fill_from_dataset


class Net(Protocol):
    """A model: ``weights`` are what is optimized, ``state`` what else changes in training, batch statistics say."""

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return new weights and state, for rows like ``x``."""

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; ``key`` decides all that is random."""

    def hidden_mode(self, weights: Any, state: Any, x: Any) -> str | None:
        """Return the argument, field or attribute that switches to training, if nothing sets it."""

    def idle_dropout(self, weights: Any, state: Any, x: Any) -> list[str]:
        """Return the names of the dropout layers with a rate above 0 that drop nothing in training."""


def build_net(conf: Conf, info: DatasetInfo, seed: int, builder: Builder) -> Net:
    """Build the module that ``conf.model`` names.

    Raises:
        ConfigError: It is not a Flax module.
    """
    node = fill_from_dataset(conf.model, info, input_shape=channels_last_shape(info))
    target = builder.locate(node["_target_"], "trainer.model._target_")
    # A class of nnx has a signature that hides its arguments.
    is_class = inspect.isclass(target)
    arguments = inspect.signature(target.__init__ if is_class else target).parameters
    more: dict[str, Any] = {"rngs": nnx.Rngs(seed)} if "rngs" in arguments else {}
    if is_class and issubclass(target, flax.linen.Module):
        needed = [name for name, one in arguments.items() if one.default is one.empty and name not in node]
        more |= mode_of(needed, training=False)
    module = builder.build(node, "trainer.model", **more)
    given = tuple(node) if is_class else ()
    if isinstance(module, flax.linen.Module):
        return Linen(module, seed, given)
    if isinstance(module, nnx.Module):
        return Nnx(module, given)
    raise ConfigError(f"trainer.model: {node['_target_']} returns a {type(module).__name__}, not a Flax module.")
