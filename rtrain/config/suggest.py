"""Guess what a wrong word was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import Field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from rtrain.config.aliases import CHOOSABLE, GROUPS, KEYS
from rtrain.config.closest import closest
from rtrain.config.schema import RtrainConf, Schemas

ELSEWHERE = 0.8
"""How alike a word has to be to that of another place; 1: the same."""


def closest_key(wrong: str, keys: Iterable[str]) -> str | None:
    """Return the full key closest to the dotted key ``wrong``.

    The first part that is not there is compared with its siblings, then with the last part of all keys.
    """
    known = list(keys)
    prefixes = {".".join(key.split(".")[:count]) for key in known for count in range(1, key.count(".") + 2)}
    parts = wrong.split(".")
    for index, part in enumerate(parts):
        parent = ".".join(parts[:index])
        if ".".join(parts[: index + 1]) in prefixes:
            continue
        siblings = {prefix.split(".")[index] for prefix in prefixes if _inside(prefix, parent, index)}
        fitting = closest(part, sorted(siblings))
        if fitting is not None:
            return ".".join([*parts[:index], fitting, *parts[index + 1 :]])
        break
    ends: dict[str, str] = {}
    for key in known:
        ends.setdefault(key.rpartition(".")[2], key)
    end = parts[-1] if parts[-1] in ends else closest(parts[-1], ends, ELSEWHERE)
    return None if end is None else ends[end]


def all_keys(schemas: Schemas, trainer: str | None = None, dataset: str | None = None) -> Iterator[str]:
    """Yield the full keys of the config, with the plugins' own where the plugin is known, and the short names."""
    yield from _keys(RtrainConf, "")
    for group, plugin in (("trainer", trainer), ("dataset", dataset)):
        yield f"{group}.type"
        conf = schemas.group(group).get(plugin or "")
        if conf is not None:
            yield from _keys(conf, group)
    yield from (*KEYS, *GROUPS, "defaults", "hydra")


def key_of_class(name: str, schemas: Schemas) -> str | None:
    """Return the key whose value is the dataclass called ``name``, if there is just one."""
    confs = [("", RtrainConf), *((group, one) for group in CHOOSABLE for one in schemas.group(group).values())]
    found = {key for where, conf in confs for key, inner in _sections(conf, where) if inner.__name__ == name}
    found |= {where for where, conf in confs if conf.__name__ == name}
    return found.pop() if len(found) == 1 else None


def plugins_with(key: str, schemas: Schemas) -> str | None:
    """Return the line that names the plugins that do know ``trainer.<key>`` or ``dataset.<key>``, if there are any."""
    group, _, name = key.partition(".")
    confs = schemas.group(group) if group in CHOOSABLE else {}
    knowing = [plugin for plugin, conf in confs.items() if name in names_of(conf)]
    notes = [one.metadata["elsewhere"] for plugin in knowing for one in fields(confs[plugin]) if _is_noted(one, name)]
    return "; ".join([f"{key} is a key of {group}={', '.join(knowing)}", *notes]) if knowing else None


def _is_noted(one: Field[Any], name: str) -> bool:
    """Tell whether a plugin says what users of other plugins should know of its key."""
    return one.name == name and "elsewhere" in one.metadata


def names_of(conf: Any) -> list[str]:
    """Return the names of the fields of a dataclass; none for anything else."""
    return [one.name for one in fields(conf)] if is_dataclass(conf) else []


def _keys(conf: Any, where: str) -> Iterator[str]:
    for name in names_of(conf):
        yield f"{where}.{name}" if where else name
    for key, inner in _sections(conf, where, deep=False):
        yield from _keys(inner, key)


def _sections(conf: Any, where: str, *, deep: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield (key, dataclass) of the dataclasses inside ``conf``."""
    for name, hint in get_type_hints(conf).items():
        full = f"{where}.{name}" if where else name
        for inner in (one for one in (hint, *get_args(hint)) if isinstance(one, type) and is_dataclass(one)):
            yield full, inner
            if deep:
                yield from _sections(inner, full)


def _inside(prefix: str, parent: str, index: int) -> bool:
    return prefix.count(".") >= index and (not parent or prefix.startswith(f"{parent}."))
