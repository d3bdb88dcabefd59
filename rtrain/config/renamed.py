"""Config keys under the names of older versions: each works for one minor version, with a note.

The dataclass keeps a field with the old name, ``old: int | None = renamed("new")``, so that a config which sets it can
be composed. Before the dataclass is made, the value goes to the new key: nothing but the field knows of the old name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from typing import Any

from rtrain.config.value_types.fields import kinds_of

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
        value, now = data.get(one.name), one.metadata.get(_NOW)
        if now is not None and value not in (None, one.default):
            yield f"{where}{one.name}", f"{where}{now}"
        elif isinstance(value, Mapping) and (inner := _dataclass_of(conf, one.name)):
            yield from old_keys(inner, value, f"{where}{one.name}.")


def new_names(conf: type) -> Iterator[tuple[str, str]]:
    """Yield (old name, new key) of the keys of a dataclass that have another name now."""
    yield from ((one.name, one.metadata[_NOW]) for one in fields(conf) if _NOW in one.metadata)


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
        f"{old} is called {now} now; the old name works in this minor version"
        if value_at(data, now) is None
        else f"{old} has no effect: {now}, its name of now, is set too"
        for old, now in found.items()
    ]


def by_new_names(conf: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the dataclass ``conf`` with those under an old name moved to the new one, if that is free."""
    found = dict(data)
    for before, now in old_keys(conf, data):
        found = _without(found, before)
        if value_at(found, now) is None:
            found = _with(found, now, value_at(data, before))
    return found


def value_at(data: Any, key: str) -> Any:
    """Return the value of a key with dots; None if there is none."""
    for name in key.split("."):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def _with(data: Any, key: str, value: Any) -> dict[str, Any]:
    name, _, rest = key.partition(".")
    inner = data.get(name) if isinstance(data, Mapping) else None
    return {**(data or {}), name: _with(inner, rest, value) if rest else value}


def _without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    name, _, rest = key.partition(".")
    return {one: _without(value, rest) if one == name else value for one, value in data.items() if one != name or rest}


def _dataclass_of(conf: type, name: str) -> type | None:
    return next((one for one in kinds_of(conf, name) if isinstance(one, type) and is_dataclass(one)), None)
