"""Old names in rtrain that configs and runs of older versions contain, and their new names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOVED = {
    "rtrain.trainers.torch.models": "rtrain.models.torch",
    "rtrain.trainers.lightning.modules": "rtrain.models.lightning",
    "rtrain.trainers.jax.models": "rtrain.models.jax",
    "rtrain.trainers.tensorflow.models": "rtrain.models.keras",
}
"""The module of now by the one of before."""


def name_of_now(path: str) -> str:
    """Return the dotted path by which what ``path`` names is found now; ``module:name`` works too."""
    for before, now in MOVED.items():
        if path.startswith((f"{before}.", f"{before}:")):
            return now + path[len(before) :]
    return path


def with_names_of_now(node: Any) -> Any:
    """Return plain data with the names of now for each ``_target_``."""
    if isinstance(node, Mapping):
        return {
            key: name_of_now(value) if key == "_target_" and isinstance(value, str) else with_names_of_now(value)
            for key, value in node.items()
        }
    return [with_names_of_now(one) for one in node] if isinstance(node, list | tuple) else node


def with_names_of_before(text: str) -> str:
    """Return a text with the names of before, so that a hash of older versions still says that a config is the same."""
    for before, now in MOVED.items():
        text = text.replace(f"{now}.", f"{before}.").replace(f"{now}:", f"{before}:")
    return text
