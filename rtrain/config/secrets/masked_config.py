"""A composed config without its secrets, for what Hydra writes and shows."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from omegaconf import AnyNode, DictConfig, Node, flag_override

from rtrain.config.compose.nodes import Container, words_of
from rtrain.config.secrets.masked import mask_value
from rtrain.config.secrets.referred import is_literal, leaves, mask_words, referred_by, referred_by_secrets
from rtrain.config.secrets.urls import MASK

OVERRIDES = "smoke.overrides"
"""Where a config holds words as a command line does."""


def masked_config(cfg: DictConfig) -> DictConfig:
    """Return a copy of a composed config, its node ``hydra`` included, without secrets."""
    masked = copy.deepcopy(cfg)
    mask_in_place(masked)
    return masked


def mask_in_place(masked: DictConfig) -> None:
    """Take the secrets out of a composed config."""
    names, hydra = referred_by_secrets(masked), masked.hydra
    words = words_of(hydra.overrides.task)
    shown = mask_words(words, names)
    dirname: Any = hydra.job._get_node("override_dirname")
    dirname = dirname._value()
    for word, other in zip(words, shown, strict=True):
        dirname = dirname.replace(word, other)
    with flag_override(masked, ["readonly", "struct"], False), flag_override(hydra, ["readonly", "struct"], False):
        hydra.overrides.task = shown
        hydra.overrides.hydra = mask_words(words_of(hydra.overrides.hydra), names)
        hydra.job.env_set = dict.fromkeys(hydra.job.env_set, MASK)
        hydra.job.override_dirname = dirname
    _hide(masked)


@contextmanager
def secrets_hidden(cfg: DictConfig) -> Iterator[None]:
    """Take the secrets out of a composed config while the block runs: references then lead to masks."""
    before = _hide(cfg)
    try:
        yield
    finally:
        for parent, key, child in before:
            parent.__dict__["_content"][key] = child


def _hide(cfg: DictConfig) -> list[tuple[Container, Any, Node]]:
    """Put masks in place of secrets, whatever their types; return what stood where."""
    every, before = list(leaves(cfg)), []
    names = referred_by(every)
    for path, parent, key, child, secret in every:
        value = child._value()
        value = value._value() if isinstance(value, Node) else value  # a union holds another node
        masked = _masked(path, value, names, secret=secret)
        if masked is not value and masked != value:
            before.append((parent, key, child))
            parent.__dict__["_content"][key] = AnyNode(masked, key, parent)
    return before


def _masked(path: str, value: Any, names: Collection[str], *, secret: bool) -> Any:
    if path in names and is_literal(value):
        return MASK
    if path.startswith(OVERRIDES) and isinstance(value, str) and not secret:
        return mask_words([value], names)[0]
    return mask_value("", value, secret=secret)
