"""Walk the nodes of a composed config without resolving anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from omegaconf import DictConfig, ListConfig, Node, OmegaConf

Container = DictConfig | ListConfig


def is_container(node: object) -> TypeGuard[Container]:
    """Tell whether a node is one, ten times as fast as ``isinstance``: these are abstract base classes."""
    return type(node) is DictConfig or type(node) is ListConfig


def is_reference(node: Node) -> bool:
    """Tell whether a node refers to another value, or is made of one; of most the value alone tells."""
    value: Any = node._value()
    may_be = "${" in value if isinstance(value, str) else isinstance(value, Node)
    return may_be and node._is_interpolation()


def children(node: Container) -> Iterator[tuple[str, Any, Node]]:
    """Yield (name, key, child) of all children; none where the node is null, missing or a reference."""
    content: Any = node.__dict__["_content"]  # node._get_node(key) checks each key again and is ten times slower
    if isinstance(content, str) or content is None:
        return
    for key, child in list(content.items() if isinstance(content, dict) else enumerate(content)):
        yield str(key), key, child


def plain(node: Container, refer: Callable[[Container, Any], Any]) -> Any:
    """Return a container as plain data: what ``OmegaConf.to_container`` returns, in a fifth of its time.

    Args:
        node: The container.
        refer: Tells what stands for a reference: gets the container that holds it, and its key there.
    """
    content = node.__dict__["_content"]
    if isinstance(content, dict):
        return {key: _plain_child(node, key, child, refer) for key, child in content.items()}
    if isinstance(content, list):
        return [_plain_child(node, key, child, refer) for key, child in enumerate(content)]
    return content


def _plain_child(node: Container, key: Any, child: Node, refer: Callable[[Container, Any], Any]) -> Any:
    value: Any = child._value()
    if isinstance(value, str) and "${" in value and child._is_interpolation():
        return refer(node, key)
    if is_container(child):
        return plain(child, refer)
    return value._value() if isinstance(value, Node) else value  # a union holds another node


def unresolved(node: Container, key: Any) -> str:
    """Return the text of a reference."""
    child: Any = node._get_node(key)
    return str(child._value())


def full_key(path: str, name: str) -> str:
    """Return the full key of ``name`` below ``path``."""
    return f"{path}.{name}" if path else name


def words_of(overrides: ListConfig) -> list[str]:
    """Return overrides as they were typed: references in them stay."""
    words: Any = OmegaConf.to_container(overrides, resolve=False)
    return [str(word) for word in words]
