"""All that a JSON schema of the config is made of: the keys of the root, and a definition for each section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtrain.config.compose.sources.store import PLUGIN_GROUPS
from rtrain.config.files.group_options import option_files, plugin_of, usual_folders
from rtrain.config.reference.definitions import REF, definitions_of
from rtrain.config.reference.plugin_parts import NULL, add_plugins, named, ref
from rtrain.config.reference.references import DEFINITIONS, opened_keys
from rtrain.config.schema import RtrainConf, Schemas

OF_PLUGINS = (*PLUGIN_GROUPS, "sweep/scheduler", "run/loggers", "datasets")


@dataclass(frozen=True)
class AllKeys:
    """The keys that there are, and the options by which a config gets some of them."""

    definitions: dict[str, Any]
    """The schema of each section by name."""
    root: dict[str, Any]
    """The schema of each key at the top."""
    plugins: dict[str, list[str]]
    """The names of the plugins by group."""
    options: dict[str, dict[str, str | None]]
    """The plugin of each option by group and name; None where the file alone doesn't say."""

    @property
    def sections(self) -> list[str]:
        """The keys at the top that hold a section which no plugin owns."""
        return [name for name, value in self.root.items() if "$ref" in value.get("anyOf", [{}])[0]]

    def target(self, section: str) -> str:
        """Return the name of the definition of such a section."""
        return str(self.root[section]["anyOf"][0]["$ref"].removeprefix(REF))

    def needed_by(self, schema: Any) -> dict[str, Any]:
        """Return the definitions that a schema refers to, those that they refer to, and so on."""
        found: dict[str, Any] = {}
        left = list(_references(schema))
        while left:
            name = left.pop()
            if name not in found:
                found[name] = self.definitions[name]
                left += _references(found[name])
        return dict(sorted(found.items()))


def all_keys(schemas: Schemas) -> AllKeys:
    """Return all keys, and the options of the built-in configs and of those in the current folder."""
    confs = {f"{group}:{name}": conf for group in OF_PLUGINS for name, conf in schemas.group(group).items()}
    names, made = definitions_of({**confs, "": RtrainConf})
    plugins = {group: [name for name, _ in schemas.group(group).items()] for group in OF_PLUGINS}
    for name in plugins["sweep"]:
        kinds = [ref("sweep/scheduler"), named(plugins["sweep/scheduler"]), NULL]
        _replace(made[names[f"sweep:{name}"]]["properties"]["scheduler"], {"anyOf": kinds})
    _replace(made["RunConf"]["properties"]["loggers"], _loggers(plugins["run/loggers"]))
    definitions = {name: opened_keys(one) for name, one in made.items()}
    root = definitions.pop(names[""])["properties"]
    for group in OF_PLUGINS:
        add_plugins(definitions, group, {name: definitions[names[f"{group}:{name}"]] for name in plugins[group]})
    definitions |= DEFINITIONS
    return AllKeys(definitions, root, plugins, _options(plugins))


def _replace(value: dict[str, Any], kinds: Mapping[str, Any]) -> None:
    """Have a key take other things than its type says."""
    for key in ("type", "additionalProperties"):
        value.pop(key, None)
    value.update(kinds)


def _loggers(names: list[str]) -> dict[str, Any]:
    each = {name: {"anyOf": [ref("run/loggers", name), NULL]} for name in names}
    mapping = {"type": "object", "additionalProperties": False, "properties": each}
    return {"anyOf": [mapping, {"type": "array", "items": named(names)}, named(names), NULL]}


def _options(plugins: Mapping[str, list[str]]) -> dict[str, dict[str, str | None]]:
    """Return the plugin that each option is for, by group and name."""
    found: dict[str, dict[str, str | None]] = {}
    for group, files in option_files(usual_folders()).items():
        found[group] = {name: plugin_of(path) for name, path in files.items()}
    for group in PLUGIN_GROUPS:
        found[group] = {**{name: name for name in plugins[group]}, **found.get(group, {})}
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(REF)
        node = list(node.values())
    if isinstance(node, list):
        for one in node:
            yield from _references(one)
