"""Flax modules, of linen and of nnx, as pure functions of their weights."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import flax.errors
import flax.linen
import jax
import jax.numpy as jnp
from flax import nnx

from rtrain.config.targets import build, locate
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.from_dataset import channels_last_shape, fill_from_dataset
from rtrain.trainers.jax.config import Conf
from rtrain.trainers.jax.modes import MODES, call_parameters, hidden_mode, mode_of


class Net(Protocol):
    """A model: ``weights`` are what is optimized, ``state`` what else changes in training, batch statistics say."""

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return new weights and state, for rows like ``x``."""

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; ``key`` decides all that is random."""

    def hidden_mode(self, weights: Any, state: Any, x: Any) -> str | None:
        """Return the boolean argument or field that switches to training, if nothing sets it."""


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
    more: dict[str, Any] = {"rngs": nnx.Rngs(seed)} if "rngs" in arguments else {}
    if is_class and issubclass(target, flax.linen.Module):
        needed = [name for name, one in arguments.items() if one.default is one.empty and name not in node]
        more |= mode_of(needed, training=False)
    module = build(node, "trainer.model", allow, **more)
    if isinstance(module, flax.linen.Module):
        return Linen(module, seed, given=tuple(node) if is_class else ())
    if isinstance(module, nnx.Module):
        return Nnx(module)
    raise ConfigError(f"trainer.model: {node['_target_']} makes a {type(module).__name__}, not a Flax module.")


class Linen:
    """A ``flax.linen`` module. Its mode is set by arguments and fields in ``MODES``.

    Args:
        module: The module.
        seed: Decides its first weights.
        given: Fields that the config sets.
    """

    def __init__(self, module: flax.linen.Module, seed: int, given: Sequence[str] = ()) -> None:
        self._module, self._seed = module, seed
        self._arguments = call_parameters(type(module))
        fields = {one.name: getattr(module, one.name, None) for one in dataclasses.fields(module)}
        self._fields = {name: one for name, one in fields.items() if name not in self._arguments}
        free = [name for name, one in self._fields.items() if name not in given and isinstance(one, bool | None)]
        self._told = {*self._arguments, *free}
        self._given = set(given) - MODES.keys()

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return new weights, and all other collections of variables as state."""
        module, mode = self._in_mode(mode_of(self._told, training=False))
        variables = module.init(jax.random.key(self._seed), x, **mode)
        return variables.get("params", {}), {name: one for name, one in variables.items() if name != "params"}

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; an evaluation changes none."""
        variables, (module, mode) = {"params": weights, **state}, self._in_mode(mode_of(self._told, training))
        if not training:
            return module.apply(variables, x, **mode), state
        output, changed = module.apply(variables, x, rngs={"dropout": key}, mutable=list(state), **mode)
        return output, {**state, **changed}

    def hidden_mode(self, weights: Any, state: Any, x: Any) -> str | None:
        """Return the argument or field that makes an evaluation draw random numbers or change statistics."""

        def is_training(name: str, value: bool) -> bool:
            module, mode = self._in_mode({name: value})
            try:
                jax.eval_shape(lambda rows: module.apply({"params": weights, **state}, rows, **mode), x)
            except (flax.errors.InvalidRngError, flax.errors.ModifyScopeVariableError):
                return True
            except Exception:  # another value need not work at all
                return False
            return False

        if mode_of(self._told, training=False):  # one name is enough, and each trial takes time
            return None
        values = {**self._fields, **{name: one.default for name, one in self._arguments.items()}}
        return hidden_mode({name: values[name] for name in sorted(values.keys() - self._given)}, is_training)

    def _in_mode(self, values: Mapping[str, bool]) -> tuple[flax.linen.Module, dict[str, bool]]:
        """Return the module with those of ``values`` that are fields, and the others as arguments of its call."""
        fields = {name: value for name, value in values.items() if name in self._fields}
        return self._module.clone(**fields), {name: values[name] for name in values.keys() - fields.keys()}


class Nnx:
    """A ``flax.nnx`` module. Its mode is set by ``train()`` and ``eval()``, and by an argument in ``MODES``."""

    def __init__(self, module: nnx.Module) -> None:
        self._arguments = call_parameters(type(module))
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
        output = module(x, **mode_of(self._arguments, training))
        return output, nnx.split(module, nnx.Param, nnx.RngState, ...)[3] if training else state

    def hidden_mode(self, weights: Any, state: Any, x: Any) -> str | None:
        """Return the argument that makes an evaluation draw random numbers or change statistics."""

        def is_training(name: str, value: bool) -> bool:
            changed = []

            def evaluate(keys: Any, some: Any, rows: Any) -> None:
                module = nnx.merge(self._graph, weights, keys, some, copy=True)
                module.eval()
                before = jax.tree.leaves(nnx.split(module, nnx.Param, ...)[2])
                module(rows, **{**mode_of(self._arguments, training=False), name: value})
                after = jax.tree.leaves(nnx.split(module, nnx.Param, ...)[2])
                changed.append([id(one) for one in before] != [id(one) for one in after])

            try:
                jax.eval_shape(evaluate, self._keys, state, x)
            except Exception:  # another value need not work at all
                return False
            return changed[0]

        unknown = {name: one.default for name, one in self._arguments.items() if name not in MODES}
        return hidden_mode(unknown, is_training)


def _is_key(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))
