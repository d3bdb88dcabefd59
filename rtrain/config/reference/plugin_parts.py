"""The sections that plugins own: one plugin's keys where the config says which, else the keys of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rtrain.config.reference.definitions import REF
from rtrain.config.reference.references import NOTES, REFERENCE, opened

NULL = {"type": "null"}
ANY = "any"
"""What the definition of a section is called that holds the keys of all plugins."""


def name_of(group: str, plugin: str | None = None) -> str:
    """Return the name of the definition of a section: of one plugin, or by what its ``type`` says."""
    return group.replace("/", ".") + (f".{plugin}" if plugin else "")


def ref(group: str, plugin: str | None = None) -> dict[str, Any]:
    """Return a reference to the definition of that name."""
    return {"$ref": REF + name_of(group, plugin)}


def add_plugins(definitions: dict[str, Any], group: str, plugins: Mapping[str, Any]) -> None:
    """Add the definitions of a section: with the keys of each plugin, with those of any, and by ``type``.

    Args:
        definitions: Gets them.
        group: The section.
        plugins: The schema of each plugin's keys.
    """
    for name, plugin in plugins.items():
        kind = {"type": "string", "const": name, "description": _summary(plugin)}
        definitions[name_of(group, name)] = {**plugin, "properties": {"type": kind, **plugin["properties"]}}
    definitions[name_of(group, ANY)] = _merged(plugins)
    given = {name: _has_type(name) for name in plugins}
    definitions[name_of(group)] = {"allOf": by_plugin(given, lambda name: ref(group, name))}


def by_plugin(given: Mapping[str, Any], then: Any) -> list[dict[str, Any]]:
    """Return the conditions under which a plugin's schema holds; where none does, that of any plugin.

    Args:
        given: What a config looks like that chooses the plugin, by name.
        then: Returns the schema of a plugin, or that of ``ANY``.
    """
    if not given:
        return [then(ANY)]
    return [
        *({"if": condition, "then": then(name)} for name, condition in given.items()),
        {"if": {"not": {"anyOf": list(given.values())}}, "then": then(ANY)},
    ]


def has_type(group: str, name: str) -> dict[str, Any]:
    """Return what configs look like whose section ``group`` names the plugin."""
    return {"required": [group], "properties": {group: _has_type(name)}}


def _has_type(name: str) -> dict[str, Any]:
    return {"type": "object", "required": ["type"], "properties": {"type": {"const": name}}}


def _merged(plugins: Mapping[str, Any]) -> dict[str, Any]:
    kind = {"type": "string", "enum": list(plugins), "description": "The plugin, which defines the other keys."}
    names = dict.fromkeys(name for plugin in plugins.values() for name in plugin["properties"])
    keys = {name: _any_of({of: one["properties"].get(name) for of, one in plugins.items()}) for name in names}
    return {"type": "object", "additionalProperties": False, "properties": {"type": opened(kind), **keys}}


def _any_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key that several plugins have."""
    there = {of: value for of, value in values.items() if value is not None}
    kinds: list[Any] = []
    for value in there.values():
        rest = {key: one for key, one in value.items() if key not in NOTES}
        kinds += [one for one in rest.get("anyOf", [rest]) if one not in kinds]
    kinds = sorted(kinds, key=lambda one: one == REFERENCE)
    texts = dict.fromkeys(value["description"] for value in there.values() if "description" in value)
    defaults = [value["default"] for value in there.values() if "default" in value]
    notes: dict[str, Any] = {"description": "\n\n".join(texts)} if texts else {}
    if len(defaults) == len(there) and all(one == defaults[0] for one in defaults):
        notes["default"] = defaults[0]
    if {} in kinds:
        return notes
    return {**notes, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}


def _summary(plugin: Mapping[str, Any]) -> str:
    return str(plugin.get("description", "")).partition("\n\n")[0]


def named(names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of one of some names."""
    return {"type": "string", "enum": list(names)}


def section(target: Mapping[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a section, which may be a reference, or one of some other things."""
    kinds: Sequence[Mapping[str, Any]] = (target, *others, REFERENCE)
    return {"anyOf": list(kinds)}
