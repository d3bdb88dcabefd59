"""Trees of arrays in safetensors files: plain numbers by path, nothing that could be executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open

from rtrain.errors import CheckpointError
from rtrain.text.printable import printable

LONGEST = 200
"""Characters of a name in a file that an error shows."""


def copied(tree: Any) -> dict[str, np.ndarray]:
    """Return copies of all arrays of ``tree`` in main memory, by path."""
    return {_name(place): np.array(jax.device_get(_numbers(leaf))) for place, leaf in _leaves(tree)}


def load(path: Path, like: Any) -> Any:
    """Return a tree like ``like`` with the arrays in ``path``.

    Raises:
        CheckpointError: The file is missing, or has other arrays, which are not read.
    """
    leaves = {_name(place): leaf for place, leaf in _leaves(like)}
    wanted = {name: _numbers(leaf) for name, leaf in leaves.items()}
    try:
        with safe_open(path, framework="flax") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no mapping)
            _check_same(path, {name: leaf.shape for name, leaf in wanted.items()}, found)
            stored = {name: file.get_tensor(name) for name in wanted}
    except (OSError, SafetensorError, ValueError, AttributeError) as error:  # the last one: types that NumPy lacks
        raise CheckpointError(f"{path} can't be read: {error}") from error
    # JAX would compute with other types, and train on in them.
    _check_same(path, *({name: leaf.dtype for name, leaf in tree.items()} for tree in (wanted, stored)))
    taken = [_as_keys(stored[name], leaf) if _is_key(leaf) else stored[name] for name, leaf in leaves.items()]
    return jax.tree.unflatten(jax.tree.structure(like), taken)


def _is_key(leaf: Any) -> bool:
    """Return whether a leaf is a key of random numbers, not an array of numbers: ``optax.add_noise`` keeps one."""
    return isinstance(leaf, jax.Array) and bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _numbers(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _as_keys(numbers: Any, like: Any) -> Any:
    return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(like))


def _check_same(path: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    if wanted != found:
        odd = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        named = ", ".join(printable(name[:LONGEST]) for name in odd[:5])
        raise CheckpointError(f"{path} does not contain the arrays of this model: {named} differ.")


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    leaves: list[tuple[Any, Any]] = jax.tree_util.tree_flatten_with_path(tree)[0]
    return leaves


def _name(place: Any) -> str:
    return str(jax.tree_util.keystr(place, simple=True, separator="/"))
