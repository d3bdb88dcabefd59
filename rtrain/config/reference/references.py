"""What a file may hold that a dataclass does not name: references in place of values, and arguments of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtrain.config.reference.misspelt import misspelt

REFERENCE = {"$ref": "#/$defs/reference"}
FREE = {"$ref": "#/$defs/free"}
MAPPING = {"$ref": "#/$defs/mapping"}
TARGET = "_target_"
_FREE = {
    "properties": {TARGET: {"type": "string", "description": "A class or function: `package.module.Name`."}},
    "propertyNames": {"not": {"pattern": f"^{misspelt([TARGET])}"}},
    "additionalProperties": FREE,
    "items": FREE,
}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "reference": {
        "type": "string",
        "pattern": r"\$\{.*\}|^\?\?\?$",
        "description": "A reference to another key, `${trainer.max_epochs}`, or to an environment variable, "
        "`${oc.env:NAME}`. `???`: the command must set it.",
    },
    "free": _FREE,
    "mapping": {"type": "object", **_FREE},
}
"""``reference`` stands for a value, ``free`` for anything, and ``mapping`` for a mapping of anything."""
NOTES = ("description", "markdownDescription", "default")
"""What a schema says to people."""


def opened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value which may be a reference instead, as may the values inside it."""
    inner = _opened_inside(schema)
    if _takes_any_text(inner):
        return inner
    notes = {key: inner.pop(key) for key in NOTES if key in inner}
    kinds = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {**notes, "anyOf": [*kinds, REFERENCE]}


def opened_keys(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a section whose values may be references."""
    return _opened_inside(definition)


def _opened_inside(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("additionalProperties") is True:
        return {**{key: schema[key] for key in NOTES if key in schema}, **MAPPING}
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {name: opened(value) for name, value in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in found and found[key] == {}:
            found[key] = FREE
        elif isinstance(found.get(key), Mapping):
            found[key] = opened(found[key])
    if "anyOf" in found:
        found["anyOf"] = [_opened_inside(one) for one in found["anyOf"]]
    return found


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema takes each text; one without a type takes anything."""
    if "anyOf" in schema:
        return any(map(_takes_any_text, schema["anyOf"]))
    kind = schema.get("type")
    if schema == FREE:
        return True
    return not {"$ref", "enum", "const", "pattern"} & set(schema) and kind in (None, "string")
