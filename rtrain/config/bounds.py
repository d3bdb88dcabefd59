"""References may expand a config: how far is bounded, as aliases of a YAML are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omegaconf.base import Container as AnyContainer
from omegaconf.base import Node
from omegaconf.errors import InterpolationResolutionError

from rtrain.config.nodes import Container, children
from rtrain.errors import ConfigError

MAX_REFERENCES = 3_000
"""Most references that are followed while a config is resolved; one is counted each time."""
MAX_VALUES = 100_000
"""Most values that they may lead to, all together."""
MAX_CHARACTERS = 10_000_000
"""Longest texts that they may lead to, all together."""


class ExpansionError(ConfigError):
    """References refer to references, again and again."""


@contextmanager
def bounded_references() -> Iterator[None]:
    """Refuse, while the block runs, references that lead to more than a config can hold.

    Raises:
        ExpansionError: They do.
    """
    before = AnyContainer.resolve_parse_tree
    left = {"references": MAX_REFERENCES, "values": MAX_VALUES, "characters": MAX_CHARACTERS}

    def resolve(self: AnyContainer, parse_tree: Any, node: Node, *args: Any, **kwargs: Any) -> Any:
        found = None
        try:
            found = before(self, parse_tree, node, *args, **kwargs)
        except InterpolationResolutionError:
            if min(left.values()) >= 0:
                raise
        values, characters = _size(found)
        left["references"] -= str(node._value()).count("${")
        left["values"] -= values
        left["characters"] -= characters
        over = next((what for what, number in left.items() if number < 0), None)
        if over is not None:
            problem = f"{node._get_full_key(None)}: references lead to references, to too many {over} in all"
            raise ExpansionError(problem)
        return found

    AnyContainer.resolve_parse_tree = resolve  # type: ignore[method-assign]
    try:
        yield
    except ExpansionError as error:  # OmegaConf adds lines
        raise ExpansionError(error.message.partition("\n")[0]) from None
    finally:
        AnyContainer.resolve_parse_tree = before  # type: ignore[method-assign]


def _size(found: Any) -> tuple[int, int]:
    """Return how many values there are in what a reference led to, as it stands there, and the length of its text."""
    if isinstance(found, Container):
        return sum(_size(child)[0] for _, _, child in children(found)) + 1, 0
    if isinstance(found, Mapping):
        return sum(_size(one)[0] for one in found.values()) + 1, 0
    if isinstance(found, list | tuple):
        return sum(_size(one)[0] for one in found) + 1, 0
    value = found._value() if isinstance(found, Node) else found
    return 1, len(value) if isinstance(value, str | bytes) else 0
