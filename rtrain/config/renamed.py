"""Config keys under the names of older versions: each works for one minor version, with a note.

The dataclass keeps a field with the old name, ``old: int | None = renamed("new")``, so that a config which sets it can
be composed. Before the dataclass is made, the value is copied to the new key, which is the one that is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from functools import cache
from itertools import islice
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from rtrain.config.did_you_mean import to_try
from rtrain.config.nested import value_at, with_value, without
from rtrain.config.value_types.fields import dataclasses_of
from rtrain.errors import ConfigError

_NOW, _WITHIN = "rtrain_renamed", "rtrain_renamed_within"


def renamed(now: str, default: Any = None, *, within: bool = False) -> Any:
    """Return the field of a key that has another name now.

    Args:
        now: The new key, with dots, from the dataclass of the old one on: ``early_stopping.patience``.
        default: The value of the old key if it is not set.
        within: Whether the value counts only where the section of the new key has others: it switches nothing on.
    """
    return field(default=default, metadata={_NOW: now, _WITHIN: within})


def old_keys(conf: type, data: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    """Yield (old key, new key), both with dots, for each old one that ``data`` sets."""
    return ((old, now) for old, now, _ in _old_fields(conf, data, where))


def _old_fields(conf: type, data: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the same, and whether the value counts only in a section that has others."""
    for one in fields(conf):
        value = data.get(one.name)
        if _NOW in one.metadata:
            if value not in (None, one.default):
                yield f"{where}{one.name}", f"{where}{one.metadata[_NOW]}", one.metadata[_WITHIN]
        elif isinstance(value, Mapping):
            for inner in islice(dataclasses_of(conf, one.name), 1):
                yield from _old_fields(inner, value, f"{where}{one.name}.")


@cache
def new_names(conf: type) -> Mapping[str, str]:
    """Return the new key, with dots, of each name in a dataclass that has another one now."""
    return MappingProxyType({one.name: one.metadata[_NOW] for one in fields(conf) if _NOW in one.metadata})


def check_renamed(data: Mapping[str, Any], conf: Any, words: Iterable[str]) -> list[str]:
    """Return a note for each key that a config sets under an old name.

    Args:
        data: The config.
        conf: What it was made into: ``RtrainConf``, which holds the dataclasses of the plugins.
        words: Overrides.

    Raises:
        ConfigError: A word sets a key to null which its old name gives a value again; names both keys.
    """
    renamed_keys = _all_old_keys(data, conf)
    for key in {key.lstrip("+") for key, _, value in (word.partition("=") for word in words) if value == "null"}:
        inside = [old for old, now in renamed_keys.items() if f"{now}.".startswith(f"{key}.")]
        if inside and attrgetter(key)(conf) is not None:
            raise ConfigError(
                f"{key}=null has no effect: {inside[0]}, an old name, is set.", to_try(f"{inside[0]}=null")
            )
    return [
        f"{old} was renamed to {now}; the old name still works in this minor version"
        if value_at(data, now) is None
        else f"{old} has no effect: its new name, {now}, is also set"
        for old, now in renamed_keys.items()
    ]


def _all_old_keys(data: Mapping[str, Any], conf: Any) -> dict[str, str]:
    """Return the new key of each old one that ``data`` sets, in all sections."""
    found = dict(old_keys(type(conf), data))
    for one in fields(conf):
        kind, section = type(getattr(conf, one.name)), data.get(one.name)
        if is_dataclass(kind) and isinstance(section, Mapping):
            found |= old_keys(kind, section, f"{one.name}.")
    return found


def with_new_names(conf: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the dataclass ``conf`` with the value of each old one at its new one too, if that is free."""
    found = dict(data)
    for before, now, within in _old_fields(conf, data, ""):
        is_idle = within and value_at(found, now.rpartition(".")[0]) is None
        if value_at(found, now) is None and not is_idle:
            found = with_value(found, now, value_at(data, before))
    return found


def by_new_names(conf: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same with the old keys left out: what two configs that mean the same have in common."""
    return without(with_new_names(conf, data), frozenset(before for before, _ in old_keys(conf, data)))
