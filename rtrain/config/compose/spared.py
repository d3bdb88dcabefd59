"""What Hydra and OmegaConf do again and again, or in vain: half of the time of composing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import hydra._internal.defaults_list
import omegaconf.base
from hydra._internal.defaults_list import Overrides
from hydra.core.default_element import InputDefault
from omegaconf import DictConfig, OmegaConf

references: Any = omegaconf.base
defaults: Any = hydra._internal.defaults_list
_parse_anew = references.parse
_parse_once = lru_cache(maxsize=500)(_parse_anew)
MAX_KEPT = 500
"""Longest text, in characters, whose syntax tree is kept: it takes a hundred times the room of the text."""
_map_of_choices = defaults._create_interpolation_map


@contextmanager
def spared_work() -> Iterator[None]:
    """Parse each reference once while the block runs, and make the choices known only to entries that refer to them."""
    before = references.parse, defaults._create_interpolation_map
    references.parse, defaults._create_interpolation_map = _parsed, _choices
    try:
        yield
    finally:
        references.parse, defaults._create_interpolation_map = before


def _parsed(text: str) -> Any:
    """Return the syntax tree of a text with references; OmegaConf parses it each time when it is followed."""
    return _parse_once(text) if len(text) <= MAX_KEPT else _parse_anew(text)


def _choices(overrides: Overrides, entries: list[InputDefault], self_added: bool) -> DictConfig:
    """Return what references in a defaults list refer to; Hydra makes it for each list, though few have any."""
    if any(not one.is_self() and one.is_interpolation() for one in entries):
        made: DictConfig = _map_of_choices(overrides, entries, self_added)
        return made
    return OmegaConf.create()
