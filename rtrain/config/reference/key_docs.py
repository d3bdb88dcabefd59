"""What each key of a conf dataclass means, from its docstring: for people, as the JSON schema is for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtrain.config.reference.definitions import schema_of

BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


@dataclass(frozen=True)
class KeyDoc:
    """One key that a config may set."""

    name: str
    """With dots for keys inside of others."""
    kind: str
    """Type and range in a few signs: ``integer >= 1 or null``."""
    default: str | None
    """As YAML has it; None if the key has to be set."""
    text: str
    """What it does."""


def key_docs(conf: type) -> list[KeyDoc]:
    """Return all keys of ``conf``, those of dataclasses inside it too, in their order."""
    schema = schema_of(conf)
    return list(_keys(schema, schema.get("$defs", {}), ""))


def _keys(schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str) -> Iterator[KeyDoc]:
    for name, key in schema.get("properties", {}).items():
        inner = _definition(key, definitions)
        default = json.dumps(key["default"]) if "default" in key else None
        if inner is None or default == "null":
            kind = "mapping or null" if inner else _kind(key, definitions)
            yield KeyDoc(f"{prefix}{name}", kind, default, _one_line(key.get("description", "")))
        if inner is not None:
            yield from _keys(inner, definitions, f"{prefix}{name}.")


def _definition(key: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the dataclass that is the value of a key, if there is one."""
    references = [one.get("$ref") for one in (key, *key.get("anyOf", ()), *key.get("allOf", ()))]
    names = [str(one).rpartition("/")[2] for one in references if one]
    return definitions[names[0]] if names else None


def _kind(key: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "anyOf" in key:
        return " or ".join(dict.fromkeys(_kind(one, definitions) for one in key["anyOf"]))
    if "enum" in key:
        return " | ".join(map(str, key["enum"]))
    name = {"object": "mapping", "array": "list"}.get(key.get("type", ""), key.get("type", "anything"))
    if name == "list" and key.get("items"):
        name = f"list of {_kind(key['items'], definitions)}"
    bounds = [f"{sign} {key[bound]:g}" for bound, sign in BOUNDS.items() if bound in key]
    return " ".join([name, *bounds])


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "").split())
