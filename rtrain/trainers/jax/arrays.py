"""Trees of arrays in safetensors files: plain numbers by path, nothing that could be executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.flax import load_file

from rtrain.errors import CheckpointError


def copied(tree: Any) -> dict[str, np.ndarray]:
    """Return copies of all arrays of ``tree`` in main memory, by path."""
    return {_name(place): np.array(jax.device_get(leaf)) for place, leaf in _leaves(tree)}


def load(path: Path, like: Any) -> Any:
    """Return a tree like ``like`` with the arrays in ``path``.

    Raises:
        CheckpointError: The file is not there, or has other arrays.
    """
    try:
        stored = load_file(path)
    except Exception as error:  # safetensors has an exception of its own beside OSError
        raise CheckpointError(f"{path} can't be read: {error}") from error
    wanted = {_name(place): leaf.shape for place, leaf in _leaves(like)}
    found = {name: leaf.shape for name, leaf in stored.items()}
    if wanted != found:
        odd = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        raise CheckpointError(f"{path} does not hold the arrays of this model: {', '.join(odd[:5])} differ.")
    return jax.tree.unflatten(jax.tree.structure(like), [stored[name] for name in wanted])


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    leaves: list[tuple[Any, Any]] = jax.tree_util.tree_flatten_with_path(tree)[0]
    return leaves


def _name(place: Any) -> str:
    return str(jax.tree_util.keystr(place, simple=True, separator="/"))
