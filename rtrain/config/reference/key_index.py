"""All keys and what may follow them, as plain data: what completion needs, without the time that the schemas take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.config.compose.sources.store import PLUGIN_GROUPS
from rtrain.config.reference.all_keys import all_keys
from rtrain.config.reference.definitions import REF
from rtrain.config.reference.references import DEFINITIONS, MAPPING
from rtrain.config.schema import Schemas

SCALARS = ("string", "integer", "number", "boolean", "array")


def key_index(schemas: Schemas) -> dict[str, Any]:
    """Return ``root`` and ``sections``: what follows each key; and ``plugins``: their names by group."""
    known = all_keys(schemas)
    sections = {
        name: {key: _following(value) for key, value in section["properties"].items()}
        for name, section in known.definitions.items()
        if "properties" in section and name not in DEFINITIONS
    }
    root = {key: _following(value) for key, value in known.root.items()} | {
        group: {"plugin": group} for group in PLUGIN_GROUPS
    }
    return {"root": root, "sections": sections, "plugins": known.plugins}


def _following(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may follow a key.

    ``section`` names one, ``keys`` are those of a mapping, ``free`` tells that it takes any, ``values`` are known ones,
    and ``closed`` tells that it takes no value but a mapping.
    """
    found: dict[str, Any] = {}
    values: list[str] = []
    is_scalar = False
    for kind in value.get("anyOf", [value]):
        target = kind.get("$ref", "").removeprefix(REF)
        values += map(str, kind.get("enum", ()))
        values += ("true", "false") if kind.get("type") == "boolean" else ()
        is_scalar = is_scalar or kind.get("type") in SCALARS
        if kind == MAPPING or isinstance(kind.get("additionalProperties"), Mapping):
            found["free"] = True
        elif target and target not in DEFINITIONS:
            found["section"] = target
        elif "properties" in kind and "required" not in kind:
            found["keys"] = {name: _following(one) for name, one in kind["properties"].items()}
    return {
        **found,
        **({"values": values} if values else {}),
        **({"closed": True} if found and not is_scalar else {}),
    }
