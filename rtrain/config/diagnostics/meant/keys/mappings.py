"""A mapping of other tools' keys: what it gives, and what there is to say about all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from rtrain.config.compose.nodes import full_key
from rtrain.config.compose.search_space import as_text
from rtrain.config.diagnostics.meant.keys.words import Meaning

NAMES = ("name", "type", "kind", "class", "class_name", "algorithm")
"""What tools call the key that names the class of a part."""


def leaves_in(value: str) -> dict[str, str]:
    """Return what a typed mapping gives, as words have it, by keys with dots: ``{a: {b: 1}}`` is ``{"a.b": "1"}``.

    Nothing if it is not a mapping, or holds lists.
    """
    if not value.startswith("{"):
        return {}
    try:
        given = OverridesParser.create().parse_override(f"key={value}").value()
    except HydraException:
        return {}
    found = dict(_leaves(given))
    if any(isinstance(one, list) for one in found.values()):
        return {}
    return {name: as_text(one) for name, one in found.items()}


def chosen_by_name(section: str, given: Mapping[str, str]) -> list[str]:
    """Return the words in which the name in a mapping chooses an option: ``optimizer=adam optimizer.lr=0.1``.

    Nothing if it has no name, or more than one.

    Args:
        section: The key whose value the mapping is, as it was typed.
        given: What the mapping gives, by keys with dots.
    """
    names = [name for name in given if name in NAMES]
    if len(names) != 1:
        return []
    others = [f"{section}.{name}={value}" for name, value in given.items() if name not in names]
    return [f"{section}={given[names[0]].lower()}", *others]


def are_of(section: str, found: Mapping[str, Meaning]) -> bool:
    """Return whether all keys that are known belong into a section under their own names, or stand at the root."""
    return all(one.sentence is None and one.key in ("", f"{section}.{name}", name) for name, one in found.items())


def said_of_all(found: Mapping[str, Meaning]) -> str | None:
    """Return the line that says where keys belong; where none belongs anywhere, the sentence about the first one."""
    keys = [f"{name} is {one.key}{f': {one.value}' if one.value else ''}" for name, one in found.items() if one.key]
    if keys:
        return f"its keys belong elsewhere: {', '.join(keys)}"
    return next((one.sentence for one in found.values() if one.sentence is not None), None)


def _leaves(given: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(given, Mapping) or not given:
        yield path, given
        return
    for name, one in given.items():
        yield from _leaves(one, full_key(path, str(name)))
