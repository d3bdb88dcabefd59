"""A value that a key may have, for a message about one that it can't: its own, or one of its type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, ListConfig, ValueNode

from rtrain.config.diagnostics.meant.rewritten import number_in
from rtrain.config.value_types.fields import kinds_of

_OF_TYPE = {int: "10", float: "0.1"}
_LACKING = (
    *("must be a number", "must be a whole number", "must be text", "can't be null"),
    *("must be at least", "must be above", "must be at most", "must be below"),
)


def lacks_example(message: str) -> bool:
    """Tell whether a message about a value shows none that would do."""
    return message.startswith(_LACKING) and not re.search("such as|like", message)


def node_at(nodes: Mapping[str, Any] | None, key: str) -> Any:
    """Return the node of a dotted key; None if it is not set."""
    node: Any = nodes
    for part in key.split("."):
        is_there = isinstance(node, Mapping | DictConfig) and part in node
        node = (node._get_node(part) if isinstance(node, DictConfig) else node[part]) if is_there else None
    return node


def usual_at(nodes: Mapping[str, Any] | None, key: str) -> str | None:
    """Return what a dotted key is set to, as a word has it, but true for a switch; None if it can't be in a word."""
    node = node_at(nodes, key)
    if isinstance(node, ListConfig) and not node._is_none():
        return f"[{','.join(map(str, node))}]" if all(type(one) in (int, float) for one in node) else None
    value = node._value() if isinstance(node, ValueNode) else None
    is_plain = isinstance(value, int | float | str) and not re.search(r"[^\w.-]", str(value))
    return ("true" if isinstance(value, bool) else str(value)) if is_plain else None


def example_of(conf: type | None, name: str) -> str | None:
    """Return a number that a key of a dataclass may be; None if the key is not a number."""
    kinds = kinds_of(conf, name)
    return next((one for kind, one in _OF_TYPE.items() if kind in kinds), None)


def first_of(default: Any, value: str) -> str | None:
    """Return a list of a number and the rest of the default: ``betas=0.8`` is ``[0.8,0.999]``.

    None where the default is not a list of different fractions: a list of sizes may have any length.
    """
    numbers = list(default) if isinstance(default, ListConfig) and not default._is_none() else []
    differ = len(set(numbers)) > 1 and all(isinstance(one, float) for one in numbers)
    return f"[{','.join([value, *map(str, numbers[1:])])}]" if differ and number_in(value) is not None else None
