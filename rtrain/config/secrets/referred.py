"""Values in ``vars`` that a secret refers to: they are secrets too, wherever they are written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from omegaconf import DictConfig, Node

from rtrain.config.compose.nodes import Container, children, full_key, is_container, is_reference
from rtrain.config.secrets.masked import mask_word
from rtrain.config.secrets.names import is_secret
from rtrain.config.secrets.urls import MASK, secrets_in_url

SECTION = "vars"
_REFERENCE = re.compile(r"\$\{\s*(\.*)([\w\-]+(?:\.[\w\-]+|\[[\w\-]+\])*)\s*\}")
_PART = re.compile(r"[\w\-]+")


class Leaf(NamedTuple):
    """A value of a composed config, or a reference."""

    path: str
    """Full key."""
    parent: Container
    key: Any
    """Its place in the parent."""
    node: Node
    is_secret: bool
    """Whether it is named like a secret, or lies in what is."""


def leaves(node: Container, path: str = "", *, secret: bool = False) -> Iterator[Leaf]:
    """Yield all values; resolves nothing."""
    is_mapping = isinstance(node, DictConfig)
    for name, key, child in children(node):
        own = secret or (is_mapping and is_secret(name))
        if is_container(child) and not is_reference(child):
            yield from leaves(child, full_key(path, name), secret=own)
        else:
            yield Leaf(full_key(path, name), node, key, child, own)


def referred_by_secrets(cfg: DictConfig) -> frozenset[str]:
    """Return the full keys of values in ``vars`` that secrets and URLs with secrets are made of; resolves nothing."""
    return referred_by(list(leaves(cfg)))


def referred_by(every: Sequence[Leaf]) -> frozenset[str]:
    """Return ``referred_by_secrets`` for the values of a config."""
    waiting = [(one.path, part) for one in every for part in _secret_parts(one.is_secret, one.node._value())]
    values = {one.path: one.node._value() for one in every} if waiting else {}
    found = set[str]()
    while waiting:
        path, text = waiting.pop()
        for name in _references(path, text):
            for leaf in [one for one in values if one == name or one.startswith(f"{name}.")]:
                if leaf not in found:
                    found.add(leaf)
                    waiting.append((leaf, str(values[leaf])))
    return frozenset(one for one in found if one.startswith(f"{SECTION}."))


def mask_words(words: Collection[str], names: Collection[str]) -> list[str]:
    """Return overrides as they may be written; Hydra can still parse them."""
    return [mask_word(_without_referred(word, names)) for word in words]


def is_literal(value: Any) -> bool:
    """Tell whether a value is a text or a number, and names no variable or other value."""
    if isinstance(value, str):
        return bool(value) and "${" not in value
    return isinstance(value, bytes | int | float) and not isinstance(value, bool)


def _without_referred(word: str, names: Collection[str]) -> str:
    key, equals, value = word.partition("=")
    plain = key.lstrip("+~")
    if plain in names and is_literal(value):
        return f"{key}='{MASK}'"
    if equals and any(name.startswith(f"{plain}.") for name in names):  # a mapping that holds it
        return f"{key}='{MASK}'"
    return word


def _secret_parts(secret: bool, value: Any) -> list[str]:
    """Return the parts of a value that are secrets."""
    if not isinstance(value, str) or "${" not in value:
        return []
    return [value] if secret else secrets_in_url(value)


def _references(path: str, text: str) -> Iterator[str]:
    """Yield the full keys that a text refers to; one that begins with dots is seen from ``path``."""
    for dots, key in _REFERENCE.findall(text):
        parts = _PART.findall(key)
        above = path.split(".")[: -len(dots)] if dots else []
        yield ".".join([*above, *parts])
