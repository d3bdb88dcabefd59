"""The keys that the dataclasses of a config declare, with the dataclasses that they stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from rtrain.config.compose.aliases import CHOOSABLE, GROUPS, KEYS
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.value_types.fields import dataclasses_of, hints_of


def all_keys(schemas: Schemas, trainer: str | None = None, dataset: str | None = None) -> Iterator[str]:
    """Yield the full keys of the config, with the plugins' own where the plugin is known, and the short names."""
    yield from _keys(RtrainConf, "")
    for group, plugin in (("trainer", trainer), ("dataset", dataset)):
        yield f"{group}.type"
        conf = schemas.group(group).get(plugin or "")
        if conf is not None:
            yield from _keys(conf, group)
    yield from (*KEYS, *GROUPS, "sweep.type", "defaults", "hydra")


def all_confs(schemas: Schemas, chosen: Mapping[str, str | None]) -> list[tuple[str, type]]:
    """Return the dataclasses of keys of a config, each by the key at which it stands.

    Args:
        schemas: Of all plugins.
        chosen: The plugin of each group.
    """
    plugins = [(group, schemas.group(group).get(name or "")) for group, name in chosen.items()]
    roots = [*((group, conf) for group, conf in plugins if conf is not None), ("", RtrainConf)]
    roots.sort(key=lambda one: one[0] == "sweep")  # words of a search mean something else elsewhere
    return [one for where, conf in roots for one in ((where, conf), *sections(conf, where))]


def key_of_class(name: str, schemas: Schemas) -> str | None:
    """Return the key whose value is the dataclass called ``name``, if there is just one."""
    confs = [("", RtrainConf), *((group, one) for group in CHOOSABLE for one in schemas.group(group).values())]
    found = {key for where, conf in confs for key, inner in sections(conf, where) if inner.__name__ == name}
    found |= {where for where, conf in confs if conf.__name__ == name}
    return found.pop() if len(found) == 1 else None


def plugins_with(key: str, schemas: Schemas) -> str | None:
    """Return the line that names the plugins that do know ``trainer.<key>`` or ``dataset.<key>``, if there are any."""
    group, name = group_and_name(key)
    confs = schemas.group(group) if group else {}
    knowing = [plugin for plugin, conf in confs.items() if name in names_of(conf)]
    return f"{group.replace('/', '.')}.{name} is a key of {group}={', '.join(knowing)}" if knowing else None


def read_whole(key: str, schemas: Schemas) -> str | None:
    """Return what to say of a key that ``dataset`` has and a data set of ``datasets`` doesn't; None of other keys."""
    section, *names = key.split(".")
    is_of_dataset = section == "datasets" and any(names[1:2] == [name] for name in _names_of_sources(schemas))
    why = "an entry of `datasets` is read whole, with all its columns; the train loop handles the rest"
    return why if is_of_dataset else None


def _names_of_sources(schemas: Schemas) -> Iterator[str]:
    for conf in schemas.dataset.values():
        yield from names_of(conf)


def group_and_name(key: str) -> tuple[str, str]:
    """Return the group whose plugins may have a full key, empty for none, and the name of the key right below it."""
    for group in ("sweep/scheduler", *CHOOSABLE):
        if is_inside(key, group.replace("/", ".")) and key.count(".") > group.count("/"):
            return group, key.split(".")[group.count("/") + 1]
    return "", ""


def names_of(conf: Any) -> list[str]:
    """Return the names of the fields of a dataclass; none for anything else."""
    return [one.name for one in fields(conf)] if is_dataclass(conf) else []


def _keys(conf: Any, where: str) -> Iterator[str]:
    for name in names_of(conf):
        yield f"{where}.{name}" if where else name
    for key, inner in sections(conf, where, deep=False):
        yield from _keys(inner, key)


def sections(conf: Any, where: str, *, deep: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield (key, dataclass) of the dataclasses inside ``conf``."""
    for name in hints_of(conf):
        full = f"{where}.{name}" if where else name
        for inner in dataclasses_of(conf, name):
            yield full, inner
            if deep:
                yield from sections(inner, full)


def is_inside(key: str, section: str) -> bool:
    """Return whether a key is a section's, or the section itself."""
    return bool(section) and f"{key}.".startswith(f"{section}.")
