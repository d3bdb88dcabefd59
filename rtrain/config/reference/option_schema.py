"""The JSON schema of the option files of a config group: ``configs/trainer/*.yaml``, say."""

from __future__ import annotations

from typing import Any

from rtrain.config.compose.aliases import GROUPS
from rtrain.config.compose.sources.store import PLUGIN_GROUPS
from rtrain.config.did_you_mean import nearest_or_all
from rtrain.config.reference.all_keys import AllKeys
from rtrain.config.reference.defaults_list import defaults_schema
from rtrain.config.reference.plugin_parts import ANY, name_of
from rtrain.errors import ConfigError


def option_schema(known: AllKeys, group: str) -> dict[str, Any]:
    """Return the schema of the options of ``group``, with their keys at the top; ``known`` gets their defaults lists.

    Raises:
        ConfigError: There is no such group.
    """
    if group in (*GROUPS, *GROUPS.values()):
        return dict(known.definitions["mapping"])
    if group in (*PLUGIN_GROUPS, "sweep/scheduler"):
        names = [name_of(group, name) for name in (*known.plugins[group], ANY)]
        schema = {"type": "object", **known.definitions[name_of(group)]}
    elif group in known.sections:
        names = [known.target(group)]
        schema = known.definitions[names[0]]
    else:
        groups = (*PLUGIN_GROUPS, "sweep/scheduler", *known.sections, *GROUPS)
        raise ConfigError(f"there is no config group '{group}'.", nearest_or_all(group, groups))
    defaults = {"defaults": _relative(known, group)}
    for name in names:
        known.definitions[name]["properties"] |= defaults
    return schema


def _relative(known: AllKeys, group: str) -> dict[str, Any]:
    """Return the schema of a defaults list in which groups are relative to ``group``, or begin with a slash."""
    inside = f"{group}/"
    options = {
        **{one.removeprefix(inside): list(names) for one, names in known.options.items() if one.startswith(inside)},
        **{f"/{one}": list(names) for one, names in known.options.items()},
    }
    return defaults_schema(options, list(known.options.get(group, ())))
