"""Flax modules, of linen and of nnx, as pure functions of their weights."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import flax.linen
import jax
import jax.numpy as jnp
from flax import nnx

from rtrain.config.targets import build, locate
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.from_dataset import channels_last_shape, fill_from_dataset
from rtrain.trainers.jax.config import Conf

MODES = {
    "train": True,
    "training": True,
    "is_training": True,
    "deterministic": False,
    "use_running_average": False,
}
"""Arguments that tell a module whether it is trained, and their values then."""


class Net(Protocol):
    """A model: ``weights`` are what is optimized, ``state`` what else changes in training, batch statistics say."""

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return new weights and state, for rows like ``x``."""

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; ``key`` decides all that is random."""


def build_net(conf: Conf, info: DatasetInfo, seed: int, allow: tuple[str, ...]) -> Net:
    """Build the module that ``conf.model`` names.

    Raises:
        ConfigError: It is no Flax module.
    """
    node = fill_from_dataset(conf.model, info, input_shape=channels_last_shape(info))
    target = locate(node["_target_"], "trainer.model._target_", allow)
    # A class of nnx has a signature of its own that hides its arguments.
    is_class = inspect.isclass(target)
    arguments = inspect.signature(target.__init__ if is_class else target).parameters
    more = {"rngs": nnx.Rngs(seed)} if "rngs" in arguments else {}
    module = build(node, "trainer.model", allow, **more)
    if isinstance(module, flax.linen.Module):
        return Linen(module, seed)
    if isinstance(module, nnx.Module):
        return Nnx(module)
    raise ConfigError(f"trainer.model: {node['_target_']} makes a {type(module).__name__}, not a Flax module.")


class Linen:
    """A ``flax.linen`` module. It gets its mode as an argument of one of ``MODES``, if it has one."""

    def __init__(self, module: flax.linen.Module, seed: int) -> None:
        self._module, self._seed = module, seed
        self._known = inspect.signature(type(module).__call__).parameters

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return new weights, and all other collections of variables as state."""
        variables = self._module.init(jax.random.key(self._seed), x, **self._mode(training=False))
        return variables.get("params", {}), {name: one for name, one in variables.items() if name != "params"}

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; an evaluation changes none."""
        variables, mode = {"params": weights, **state}, self._mode(training)
        if not training:
            return self._module.apply(variables, x, **mode), state
        output, changed = self._module.apply(variables, x, rngs={"dropout": key}, mutable=list(state), **mode)
        return output, {**state, **changed}

    def _mode(self, training: bool) -> dict[str, bool]:
        return {name: training == means for name, means in MODES.items() if name in self._known}


class Nnx:
    """A ``flax.nnx`` module. It is told by its methods ``train`` and ``eval``."""

    def __init__(self, module: nnx.Module) -> None:
        self._graph, self._weights, self._keys, self._state = nnx.split(module, nnx.Param, nnx.RngState, ...)

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return the weights that the module was built with."""
        return self._weights, self._state

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; the module's own streams of random numbers begin anew with each ``key``."""
        number = jax.random.bits(key)
        keys = jax.tree.map(lambda one: jax.random.fold_in(one, number) if _is_key(one) else one, self._keys)
        module = nnx.merge(self._graph, weights, keys, state, copy=True)
        if training:
            module.train()
        else:
            module.eval()
        output = module(x)
        return output, nnx.split(module, nnx.Param, nnx.RngState, ...)[3] if training else state


def _is_key(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))
