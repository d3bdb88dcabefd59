"""How large a config may be, and what its references and its defaults lists may expand to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import yaml
from hydra._internal import config_loader_impl
from hydra._internal.config_repository import CachingConfigRepository, IConfigRepository
from hydra.plugins.config_source import ConfigResult
from omegaconf.base import Container as AnyContainer
from omegaconf.base import Node
from omegaconf.errors import InterpolationResolutionError
from omegaconf.resolvers import oc

from rtrain.config.compose.nodes import Container, children
from rtrain.config.compose.resolvers import replaced_resolvers
from rtrain.config.compose.spared import spared_work
from rtrain.errors import ConfigError

MAX_WORD = 100_000
"""Longest override that a file may hold."""
MAX_NESTED_WORD = 10_000
"""The same where it holds lists or mappings, for which Hydra takes a hundred times as long."""
MAX_WORDS = 200_000
"""Characters of all overrides that a file may hold."""
MAX_DEFAULTS = 400
"""Most entries of defaults lists, those of files that are included included."""
MAX_REFERENCES = 3_000
"""Most references that are followed while a config is resolved; one is counted each time."""
MAX_VALUES = 100_000
"""Most values that they may lead to, all together."""
MAX_CHARACTERS = 10_000_000
"""Longest texts that they may lead to, all together."""
MAX_PARSED = 100_000
"""Longest texts that are parsed as references or by ``oc.decode``, all together."""


class ExpansionError(ConfigError):
    """References refer to references, or files include files, again and again."""


@contextmanager
def bounded_references() -> Iterator[None]:
    """Refuse, while the block runs, references that lead to more than a config can hold.

    Raises:
        ExpansionError: They do.
    """
    before = AnyContainer.resolve_parse_tree
    left = {"references": MAX_REFERENCES, "values": MAX_VALUES, "characters": MAX_CHARACTERS, "signs": MAX_PARSED}

    def spend(text: str) -> None:
        left["signs"] -= len(text)
        if left["signs"] < 0:
            raise ExpansionError("too long")

    def resolve(self: AnyContainer, parse_tree: Any, node: Node, *args: Any, **kwargs: Any) -> Any:
        found, text = None, str(node._value())
        try:
            spend(text)
            found = before(self, parse_tree, node, *args, **kwargs)
        except (ExpansionError, InterpolationResolutionError):
            if min(left.values()) >= 0:
                raise
        values, characters = _size(found)
        left["references"] -= text.count("${")
        left["values"] -= values
        left["characters"] -= characters
        over = next((what for what, number in left.items() if number < 0), None)
        if over is not None:
            problem = f"{node._get_full_key(None)}: nested references expand to too many {over}"
            raise ExpansionError(problem)
        return found

    AnyContainer.resolve_parse_tree = resolve  # type: ignore[method-assign]
    config_loader_impl.CachingConfigRepository = _CountingRepository  # type: ignore[attr-defined]
    try:
        with replaced_resolvers(_bounded_resolvers(spend)), spared_work():
            yield
    except ExpansionError as error:  # OmegaConf adds lines
        raise ExpansionError(error.message.partition("\n")[0]) from None
    finally:
        AnyContainer.resolve_parse_tree = before  # type: ignore[method-assign]
        config_loader_impl.CachingConfigRepository = CachingConfigRepository  # type: ignore[attr-defined]


def _bounded_resolvers(spend: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
    """Return the resolvers that parse texts, by name: they spend the length of texts and expand no aliases."""

    def decode(expr: Any, _parent_: Any, _node_: Any) -> Any:
        if isinstance(expr, str):
            spend(expr)
        return oc.decode(expr, _parent_, _node_)

    def create(obj: Any, _parent_: Any) -> Any:
        if isinstance(obj, str):
            spend(obj)
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(obj)):
                raise ValueError("a text with YAML aliases is not expanded")
        return oc.create(obj, _parent_)

    return {"oc.decode": decode, "oc.create": create}


class _CountingRepository(CachingConfigRepository):
    """Counts what defaults lists load: a file that is included twice counts twice."""

    def __init__(self, delegate: IConfigRepository) -> None:
        # Hydra's own copies the sources too, with all schemas; what it changes is which sources there are.
        self.delegate, self.cache = copy(delegate), {}
        self._loads = 0

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return a config."""
        self._loads += 1
        if self._loads > MAX_DEFAULTS:
            raise ExpansionError(f"{config_path}: defaults lists include more than {MAX_DEFAULTS} configs in total")
        return super().load_config(config_path)


def check_words(where: str, words: Sequence[str]) -> None:
    """Refuse overrides of a file that would take long to parse.

    Args:
        where: The key that holds them.
        words: The overrides.

    Raises:
        ExpansionError: One is too long, or all together are.
    """
    for word in words:
        most = MAX_NESTED_WORD if re.search(r"=.*[\[{]", word, re.DOTALL) else MAX_WORD
        if len(word) > most:
            raise ExpansionError(f"{where}: an override has {len(word):,} characters; the maximum is {most:,}")
    if sum(map(len, words)) > MAX_WORDS:
        raise ExpansionError(f"{where}: its overrides have more than {MAX_WORDS:,} characters")


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
