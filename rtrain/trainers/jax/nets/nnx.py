"""Modules of ``flax.nnx`` as pure functions of their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.interpreters.partial_eval import dce_jaxpr

from rtrain.trainers.jax.nets.modes import (
    MODES,
    arguments_of,
    call_parameters,
    dropout_rate,
    hidden_mode,
    is_switch,
    mode_of,
    modes_by_keyword,
    other_values,
)

WITH_DROPOUT = (nnx.Dropout, nnx.MultiHeadAttention)
"""Layers with dropout."""


class Nnx:
    """A ``flax.nnx`` module. Its mode is set by ``train()`` and ``eval()``, arguments and attributes in ``MODES``.

    Args:
        module: The module.
        given: Arguments that the config sets.
    """

    def __init__(self, module: nnx.Module, given: Sequence[str] = ()) -> None:
        self._arguments = call_parameters(type(module))
        self._told, self._given = set(self._arguments), set(given)
        self._graph, self._weights, self._keys, self._state = nnx.split(module, nnx.Param, nnx.RngState, ...)

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return the weights that the module was built with."""

        def is_training(name: str, value: bool) -> bool:
            return self._is_training(self._weights, self._state, x, {name: value}, {})

        self._told |= set(modes_by_keyword(self._arguments, is_training))
        return self._weights, self._state

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; each ``key`` restarts the module's streams of random numbers."""
        number = jax.random.bits(key)
        keys = jax.tree.map(lambda one: jax.random.fold_in(one, number) if _is_key(one) else one, self._keys)
        module = self._in_mode(weights, keys, state, training)
        output = self._call(module, x, mode_of(self._told, training))
        return output, _state_of(module) if training else state

    def hidden_mode(self, weights: Any, state: Any, x: Any) -> str | None:
        """Return the argument or attribute that makes an evaluation draw random numbers or change statistics."""
        arguments = {name: one.default for name, one in self._arguments.items() if name not in MODES}
        attributes = {
            name: value
            for _, one in nnx.iter_modules(nnx.merge(self._graph, weights, self._keys, state))
            if not type(one).__module__.startswith("flax.")
            for name, value in vars(one).items()
            if name not in {*MODES, *self._given} and not name.startswith("_") and other_values(value)
        }

        def is_argument(name: str, value: Any) -> bool:
            return self._is_training(weights, state, x, {name: value}, {})

        def is_attribute(name: str, value: Any) -> bool:
            return self._is_training(weights, state, x, {}, {name: value})

        if self._is_training(weights, state, x, {}, {}):  # without a difference, nothing can be found
            return None
        return hidden_mode(arguments, is_argument) or hidden_mode(attributes, is_attribute)

    def idle_dropout(self, weights: Any, state: Any, x: Any) -> list[str]:
        """Return the names of the layers with dropout whose random numbers the output in training doesn't depend on."""

        def output(keys: Any, rows: Any) -> Any:
            module = self._in_mode(weights, keys, state, training=True)
            return self._call(module, rows, mode_of(self._told, training=True))

        drawn = _needed(output, self._keys, x)
        module = nnx.merge(self._graph, weights, self._keys, state)
        layers = [path for path, one in nnx.iter_modules(module) if isinstance(one, WITH_DROPOUT) and dropout_rate(one)]
        return ["/".join(map(str, path)) for path in layers if drawn.get((*path, "rngs", "key")) is False]

    def _is_training(
        self, weights: Any, state: Any, x: Any, arguments: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> bool:
        """Return whether an evaluation with other arguments and attributes draws random numbers or changes state."""
        has_changed = []

        def evaluate(keys: Any, rows: Any) -> Any:
            module = self._in_mode(weights, keys, state, training=False)
            for _, one in nnx.iter_modules(module):
                for name in attributes.keys() & vars(one).keys():
                    setattr(one, name, attributes[name])
            before = _statistics_of(module)
            output = self._call(module, rows, {**mode_of(self._told, training=False), **arguments})
            after = _statistics_of(module)
            has_changed.append([id(one) for one in before] != [id(one) for one in after])
            return output

        try:
            drawn = _needed(evaluate, self._keys, x)
        except Exception:  # another value need not work at all
            return False
        return has_changed[0] or any(drawn.values())

    def _call(self, module: Any, x: Any, values: Mapping[str, Any]) -> Any:
        by_position, by_name = arguments_of(self._arguments, values)
        return module(x, *by_position, **by_name)

    def _in_mode(self, weights: Any, keys: Any, state: Any, training: bool) -> Any:
        """Return the module; its own ``train()`` and ``eval()`` have the last word on attributes."""
        module = nnx.merge(self._graph, weights, keys, state, copy=True)
        for _, one in nnx.iter_modules(module):
            for name, value in mode_of(vars(one), training).items():
                if is_switch(vars(one)[name]):
                    setattr(one, name, value)
        if training:
            module.train()
        else:
            module.eval()
        return module


def _needed(function: Any, keys: Any, x: Any) -> dict[tuple[Any, ...], bool]:
    """Return of each leaf of ``keys``, by its path, whether the output of ``function`` of keys and rows needs it."""
    traced = jax.make_jaxpr(function)(keys, x).jaxpr
    _, is_used = dce_jaxpr(traced, [True] * len(traced.outvars))
    names = [path for path, _ in nnx.to_flat_state(keys)]
    return dict(zip(names, is_used, strict=False))


def _state_of(module: nnx.Module) -> Any:
    return nnx.split(module, nnx.Param, nnx.RngState, ...)[3]


def _statistics_of(module: nnx.Module) -> list[Any]:
    """Return the state that no evaluation changes."""
    parts = nnx.split(module, nnx.Param, nnx.RngState, (nnx.Cache, nnx.Intermediate), ...)
    return list(jax.tree.leaves(parts[4]))


def _is_key(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))
