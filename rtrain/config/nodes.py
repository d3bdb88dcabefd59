"""Walk the nodes of a composed config without resolving anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, ListConfig, Node, OmegaConf

Container = DictConfig | ListConfig


def children(node: Container) -> Iterator[tuple[str, Any, Node]]:
    """Yield (name, key, child) of all children; none where the node is null, missing or a reference."""
    if node._is_none() or node._is_missing() or node._is_interpolation():
        return
    keys: list[Any] = list(node.keys()) if isinstance(node, DictConfig) else list(range(len(node)))
    for key in keys:
        child: Any = node._get_node(key)
        if child is not None:
            yield str(key), key, child


def joined(path: str, name: str) -> str:
    """Return the full key of ``name`` below ``path``."""
    return f"{path}.{name}" if path else name


def words_of(overrides: ListConfig) -> list[str]:
    """Return overrides as they were typed: references in them stay."""
    words: Any = OmegaConf.to_container(overrides, resolve=False)
    return [str(word) for word in words]
