"""Plain mappings in each other, by keys with dots. What is given stays as it is: all functions return new mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value_at(data: Any, key: str) -> Any:
    """Return the value of a key with dots; None if there is none."""
    for name in key.split("."):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def with_value(data: Mapping[str, Any] | None, key: str, value: Any) -> dict[str, Any]:
    """Return a mapping with a value at a key with dots; mappings that are missing on the way, or null, are made."""
    name, _, rest = key.partition(".")
    return {**(data or {}), name: with_value(value_at(data, name), rest, value) if rest else value}


def without(data: Mapping[str, Any], keys: frozenset[str], where: str = "") -> dict[str, Any]:
    """Return a mapping without the keys that are named, at any depth."""
    kept = {key: value for key, value in data.items() if f"{where}{key}" not in keys}
    return {
        key: without(value, keys, f"{where}{key}.") if isinstance(value, Mapping) else value
        for key, value in kept.items()
    }
