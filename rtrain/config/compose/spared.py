"""What Hydra and OmegaConf do more often than needed: half of the time of composing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from typing import Any

import omegaconf.base
from hydra._internal import defaults_list
from hydra._internal.defaults_list import Overrides
from hydra.core.default_element import InputDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

references: Any = omegaconf.base
defaults: Any = defaults_list
words: Any = OverridesParser
_parse_again = references.parse
_parse_once = lru_cache(maxsize=500)(_parse_again)
MAX_KEPT = 500
"""Longest text, in characters, whose syntax tree is kept: it takes a hundred times the memory of the text."""
_map_of_choices = defaults._create_interpolation_map
_parse_word_again = words.parse_rule


@contextmanager
def spared_work() -> Iterator[None]:
    """Parse each reference and each word once while the block runs; make a map of choices only where one is needed."""
    before = references.parse, defaults._create_interpolation_map, words.parse_rule
    references.parse, defaults._create_interpolation_map, words.parse_rule = _parsed, _choices, _parsed_word
    try:
        yield
    finally:
        references.parse, defaults._create_interpolation_map, words.parse_rule = before


def _parsed(text: str) -> Any:
    """Return the syntax tree of a text with references; OmegaConf parses it each time when it is followed."""
    return _parse_once(text) if len(text) <= MAX_KEPT else _parse_again(text)


def _parsed_word(_: OverridesParser, text: str, rule: str) -> Any:
    """Return what a word says; Hydra parses it wherever it is looked at, and changes what it gets."""
    return deepcopy(_parse_word_once(text, rule))


@lru_cache(maxsize=200)
def _parse_word_once(text: str, rule: str) -> Any:
    return _parse_word_again(OverridesParser.create(), text, rule)


def _choices(overrides: Overrides, entries: list[InputDefault], self_added: bool) -> DictConfig:
    """Return what references in a defaults list refer to; Hydra makes it for each list, though few have any."""
    if any(not one.is_self() and one.is_interpolation() for one in entries):
        made: DictConfig = _map_of_choices(overrides, entries, self_added)
        return made
    return OmegaConf.create()
