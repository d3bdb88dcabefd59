"""Modules of ``flax.linen`` as pure functions of their weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import flax.errors
import flax.linen
import jax

from rtrain.trainers.jax.nets.modes import (
    MODES,
    arguments_of,
    call_parameters,
    dropout_rate,
    hidden_mode,
    is_switch,
    mode_of,
    modes_by_keyword,
)

CALLS = (flax.linen.Dropout.__call__, flax.linen.MultiHeadDotProductAttention.__call__)
"""Those of layers with dropout."""
NO_STATISTICS = ["cache", "intermediates"]
"""Collections that may change in an evaluation."""


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
        own = {one.name for one in dataclasses.fields(module)} - {"parent", "name"}
        fields = {name: getattr(module, name, None) for name in own}
        self._fields = {name: one for name, one in fields.items() if name not in self._arguments}
        free = [name for name, one in self._fields.items() if name not in given and is_switch(one)]
        self._told = {*self._arguments, *free}
        self._given = set(given) - MODES.keys()

    def init(self, x: Any) -> tuple[Any, Any]:
        """Return new weights, and all other collections of variables as state."""
        module, arguments, mode = self._in_mode(mode_of(self._told, training=False))
        variables = module.init(jax.random.key(self._seed), x, *arguments, **mode)

        def is_training(name: str, value: bool) -> bool:
            return self._is_training(variables, x, {name: value})

        self._told |= set(modes_by_keyword(self._arguments, is_training))
        return variables.get("params", {}), {name: one for name, one in variables.items() if name != "params"}

    def apply(self, weights: Any, state: Any, x: Any, key: Any, training: bool) -> tuple[Any, Any]:
        """Return output and new state; an evaluation changes none."""
        module, arguments, mode = self._in_mode(mode_of(self._told, training))
        variables = {"params": weights, **state}
        if not training:
            return module.apply(variables, x, *arguments, **mode), state
        # Streams of other names than dropout are drawn from that of params.
        streams = {"dropout": key, "params": jax.random.fold_in(key, 1)}
        output, changed = module.apply(variables, x, *arguments, rngs=streams, mutable=list(state), **mode)
        return output, {**state, **changed}

    def hidden_mode(self, weights: Any, state: Any, x: Any) -> str | None:
        """Return the argument or field that makes an evaluation draw random numbers or change statistics."""
        if mode_of(self._told, training=False):  # one name is enough, and each look takes time
            return None

        def is_training(name: str, value: Any) -> bool:
            return self._is_training({"params": weights, **state}, x, {name: value})

        values = {**self._fields, **{name: one.default for name, one in self._arguments.items()}}
        return hidden_mode({name: values[name] for name in sorted(values.keys() - self._given)}, is_training)

    def idle_dropout(self, weights: Any, state: Any, x: Any) -> list[str]:
        """Return the names of the layers with dropout that draw no random numbers in any of their calls in training."""
        is_idle: dict[str, bool] = {}

        def watch(call: Any, arguments: Any, keywords: Any, context: Any) -> Any:
            layer = context.module
            # A layer that is itself a transformed class, remat(Dropout), draws where nothing sees it.
            if type(layer).__call__ not in CALLS or not dropout_rate(layer) or keywords.get("rng") is not None:
                return call(*arguments, **keywords)
            before = _numbers_drawn(layer)
            output = call(*arguments, **keywords)
            name = "/".join(layer.path)
            is_idle[name] = _numbers_drawn(layer) == before and is_idle.get(name, True)
            return output

        with flax.linen.intercept_methods(watch):
            jax.eval_shape(lambda rows: self.apply(weights, state, rows, jax.random.key(0), training=True), x)
        return [name for name, idle in is_idle.items() if idle]

    def _is_training(self, variables: Any, x: Any, values: Mapping[str, Any]) -> bool:
        """Return whether an evaluation with ``values`` draws random numbers or changes statistics."""
        try:
            module, arguments, mode = self._in_mode({**mode_of(self._told, training=False), **values})
            jax.eval_shape(lambda rows: module.apply(variables, rows, *arguments, mutable=NO_STATISTICS, **mode), x)
        except (flax.errors.InvalidRngError, flax.errors.ModifyScopeVariableError):
            return True
        except Exception:  # another value need not work at all
            return False
        return False

    def _in_mode(self, values: Mapping[str, Any]) -> tuple[flax.linen.Module, list[Any], Any]:
        """Return the module with those of ``values`` that are fields, and the others as arguments of its call."""
        fields = {name: value for name, value in values.items() if name in self._fields}
        others = {name: values[name] for name in values.keys() - fields.keys()}
        return self._module.clone(**fields), *arguments_of(self._arguments, others)


def _numbers_drawn(layer: flax.linen.Module) -> list[int]:
    """Return how often a layer has drawn from each stream."""
    assert layer.scope is not None, "it is being called"
    return [layer.scope.rng_counters[name] for name in layer.scope.rngs]
