"""The JSON schema of the config, for completion and checks in an editor.

It holds what a file may say before Hydra composes it: short names, defaults lists and references too. Where a
config says which trainer, dataset or search it is for, by ``type`` or in its defaults list, only those keys are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hydra.conf import HydraConf

from rtrain.config.compose.aliases import GROUPS, KEYS
from rtrain.config.compose.sources.store import PLUGIN_GROUPS
from rtrain.config.files.locations import config_names
from rtrain.config.reference.all_keys import AllKeys, all_keys
from rtrain.config.reference.defaults_list import defaults_schema, is_chosen
from rtrain.config.reference.option_schema import option_schema
from rtrain.config.reference.plugin_parts import ANY, NULL, by_plugin, has_type, name_of, ref, section
from rtrain.config.reference.references import opened
from rtrain.config.schema import Schemas

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The one that all editors know."""
SHORTS = KEYS | {short: group.replace("/", ".") for short, group in GROUPS.items()}
"""Short names and the keys that they stand for."""


def json_schema(schemas: Schemas, group: str | None = None) -> dict[str, Any]:
    """Return the JSON schema of a config, or of the option files of a config group.

    Raises:
        ConfigError: There is no such group.
    """
    known = all_keys(schemas)
    schema = _whole(known) if group is None else option_schema(known, group)
    head = {"$schema": DIALECT, "title": f"rtrain {group or 'config'}"}
    return with_markdown({**head, **schema, "$defs": known.needed_by(schema)})


def _whole(known: AllKeys) -> dict[str, Any]:
    properties = {
        "defaults": defaults_schema({group: list(names) for group, names in known.options.items()}, config_names()),
        **known.root,
        **{group: {"description": known.root[group]["description"]} for group in PLUGIN_GROUPS},
        "datasets": {**known.root["datasets"], "anyOf": [_named_sets(), *known.root["datasets"]["anyOf"][1:]]},
        **{short: _short(known, short) for short in SHORTS},
        "hydra": _hydra(),
    }
    conditions = [one for group in PLUGIN_GROUPS for one in _conditions(known, group)]
    return {"type": "object", "additionalProperties": False, "properties": properties, "allOf": conditions}


def _named_sets() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": section(ref("datasets"))}


def _hydra() -> dict[str, Any]:
    keys: dict[str, Any] = {one.name: {} for one in fields(HydraConf)}
    return {
        "type": "object",
        "description": "Hydra's settings.",
        "additionalProperties": False,
        "properties": keys,
    }


def _conditions(known: AllKeys, group: str) -> list[dict[str, Any]]:
    """Return what holds for a config by the plugin that it names in a section, or chooses in its defaults list."""
    given = {
        name: {"anyOf": [has_type(group, name), is_chosen(group, options)]}
        for name in known.plugins[group]
        if (options := [option for option, plugin in known.options[group].items() if plugin == name])
    }
    return by_plugin(given, lambda name: {"properties": _keys_by_plugin(known, group, name)})


def _keys_by_plugin(known: AllKeys, group: str, name: str) -> dict[str, Any]:
    """Return the keys at the top that depend on the plugin of a section."""
    if group != "trainer":
        return {group: section(ref(group, name), NULL)}
    keys = known.definitions[name_of(group, name)]["properties"]
    shorts = {short: _value(key, keys) for short, key in SHORTS.items() if key.startswith("trainer.")}
    return {group: section(ref(group, name)), **shorts}


def _short(known: AllKeys, short: str) -> dict[str, Any]:
    """Return what is known of a short name, whatever the trainer."""
    key = SHORTS[short]
    owner, name, *_ = key.split(".")
    section = name_of(owner, ANY) if owner == "trainer" else known.target(owner)
    keys = known.definitions[section]["properties"]
    says = "" if key.count(".") > 1 else keys.get(name, {}).get("description", "")
    text = {"description": f"Short for `{key}`. {says}"}
    return text if owner == "trainer" else {**_value(key, keys), **text}


def _value(key: str, keys: Mapping[str, Any]) -> Any:
    """Return the schema of a full key from those of its section; False, which nothing fits, if it lacks the key."""
    _, name, *inner = key.split(".")
    if name not in keys:
        return False
    return opened({"type": "number"}) if inner else keys[name]


def with_markdown(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose descriptions are Markdown; those of keys with a default name it."""
    found = {key: _inside(value) for key, value in schema.items()}
    text = schema.get("description")
    if isinstance(text, str):
        shown = "\n\n".join(" ".join(one.split()) for one in text.replace("``", "`").split("\n\n")).strip()
        found["description"] = shown
        default = f"\n\nDefault: `{json.dumps(schema['default'])}`" if "default" in schema else ""
        if default or "`" in shown:  # a plain description is shown with its signs
            found["markdownDescription"] = shown + default
    return found


def _inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return with_markdown(value)
    return [_inside(one) for one in value] if isinstance(value, list) else value
