"""A composed config without its secrets, for what Hydra writes and shows."""

from __future__ import annotations

import copy
from typing import Any

from omegaconf import DictConfig, flag_override

from rtrain.config.nodes import Container, children, words_of
from rtrain.config.referred import mask_referred, mask_words, referred_by_secrets
from rtrain.config.secrets import MASK, mask_value


def masked_config(cfg: DictConfig) -> DictConfig:
    """Return a copy of a composed config, its node ``hydra`` included, without secrets."""
    masked = copy.deepcopy(cfg)
    mask_in_place(masked)
    return masked


def mask_in_place(masked: DictConfig) -> None:
    """Take the secrets out of a composed config."""
    names = referred_by_secrets(masked)
    with flag_override(masked, ["readonly", "struct"], False):
        mask_referred(masked, names)
        _mask_nodes(masked)
        smoke = masked.get("smoke")
        if isinstance(smoke, DictConfig) and "overrides" in smoke:
            smoke.overrides = mask_words(words_of(smoke.overrides), names)
        hydra = masked.hydra
        with flag_override(hydra, ["readonly", "struct"], False):
            words = words_of(hydra.overrides.task)
            hydra.overrides.task = mask_words(words, names)
            hydra.overrides.hydra = mask_words(words_of(hydra.overrides.hydra), names)
            hydra.job.env_set = dict.fromkeys(hydra.job.env_set, MASK)
            dirname: Any = hydra.job._get_node("override_dirname")
            dirname = dirname._value()
            for word in words:
                dirname = dirname.replace(word, mask_words([word], names)[0])
            hydra.job.override_dirname = dirname


def _mask_nodes(node: Container, key: str = "") -> None:
    """Mask the scalars below ``node`` in place; the items of a list go by the key of the list."""
    for name, _, child in children(node):
        own = name if isinstance(node, DictConfig) else key
        if isinstance(child, Container):
            _mask_nodes(child, own)
            continue
        value = child._value()
        masked = mask_value(own, value)
        if masked is not value and masked != value:
            with flag_override(child, "readonly", False):
                child._set_value(masked)
