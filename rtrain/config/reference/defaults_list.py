"""The JSON schema of a defaults list: groups, options, and the plugin that an entry chooses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rtrain.config.compose.aliases import GROUPS
from rtrain.config.reference.misspelt import misspelt

KEYWORDS = r"^((override|optional) )*"


def defaults_schema(options: Mapping[str, Sequence[str]], configs: Sequence[str]) -> dict[str, Any]:
    """Return the schema of a defaults list.

    Args:
        options: The names of the options by group.
        configs: The names of configs, which a list may include.
    """
    groups = {**options, **{short: options[group] for short, group in GROUPS.items() if group in options}}
    entries = {
        f"{keyword}{group}": _choice(group, names)
        for keyword in ("", "override /", "optional ")
        for group, names in groups.items()
    }
    entry = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": entries,
        "propertyNames": {"not": {"pattern": f"{KEYWORDS}{misspelt(groups)}"}},
        "additionalProperties": {"type": ["string", "null", "array"]},
    }
    text = {
        "type": "string",
        "description": "Another config to include, or `_self_`: the position of this file's keys.",
    }
    named = {"enum": ["_self_", *configs], "type": "string"}
    return {
        "type": "array",
        "description": "What this config is made of: `- GROUP: OPTION`, later ones win. Keys of the file override all "
        "of them, unless `- _self_` sets their position. `- override /GROUP: OPTION` changes the choice of an included "
        "file.",
        "items": {"anyOf": [entry, named, text]},
    }


def _choice(group: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the schema of what an entry chooses: a known option, or another one."""
    return {
        "description": f"An option of `{group}`: {', '.join(f'`{name}`' for name in names)}; or a custom option.",
        "anyOf": [
            {"type": "string", "enum": list(names)},
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string"}},
            {"type": "null"},
        ],
    }


def is_chosen(group: str, names: Collection[str]) -> dict[str, Any]:
    """Return the schema of configs whose defaults list chooses one of some options of a group."""
    pattern = f"{KEYWORDS}/?{group}$"
    entry = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": pattern},
        "additionalProperties": {"enum": sorted(names)},
    }
    return {"required": ["defaults"], "properties": {"defaults": {"type": "array", "contains": entry}}}
