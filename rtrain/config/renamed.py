"""Config keys under the names of older versions: each works for one minor version, with a note.

The dataclass keeps a field with the old name, ``old: int | None = renamed("new")``, so that a config which sets it can
be composed. Before the dataclass is made, the value is copied to the new key, which is the one that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Any

from rtrain.config.nested import value_at, with_value, without
from rtrain.config.value_types.fields import dataclasses_of

_NOW = "rtrain_renamed"


def renamed(now: str, default: Any = None) -> Any:
    """Return the field of a key that has another name now.

    Args:
        now: The new key, with dots, from the dataclass of the old one on: ``early_stopping.patience``.
        default: The value of the old key if it is not set.
    """
    return field(default=default, metadata={_NOW: now})


def old_keys(conf: type, data: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    """Yield (old key, new key), both with dots, for each old one that ``data`` sets."""
    for one in fields(conf):
        value = data.get(one.name)
        if _NOW in one.metadata:
            if value not in (None, one.default):
                yield f"{where}{one.name}", f"{where}{one.metadata[_NOW]}"
        elif isinstance(value, Mapping):
            for inner in islice(dataclasses_of(conf, one.name), 1):
                yield from old_keys(inner, value, f"{where}{one.name}.")


@cache
def new_names(conf: type) -> Mapping[str, str]:
    """Return the new key, with dots, of each name in a dataclass that has another one now."""
    return MappingProxyType({one.name: one.metadata[_NOW] for one in fields(conf) if _NOW in one.metadata})


def notes_of_renamed(data: Mapping[str, Any], conf: Any) -> list[str]:
    """Return a note for each key that a config sets under an old name.

    Args:
        data: The config.
        conf: What it was made into: ``RtrainConf``, which holds the dataclasses of the plugins.
    """
    found = dict(old_keys(type(conf), data))
    for one in fields(conf):
        kind, section = type(getattr(conf, one.name)), data.get(one.name)
        if is_dataclass(kind) and isinstance(section, Mapping):
            found |= old_keys(kind, section, f"{one.name}.")
    return [
        f"{old} was renamed to {now}; the old name still works in this minor version"
        if value_at(data, now) is None
        else f"{old} has no effect: its new name, {now}, is also set"
        for old, now in found.items()
    ]


def with_new_names(conf: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the dataclass ``conf`` with the value of each old one at its new one too, if that is free."""
    found = dict(data)
    for before, now in old_keys(conf, data):
        if value_at(found, now) is None:
            found = with_value(found, now, value_at(data, before))
    return found


def by_new_names(conf: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same with the old keys left out: what two configs that mean the same have in common."""
    return without(with_new_names(conf, data), frozenset(before for before, _ in old_keys(conf, data)))
