"""The JSON schema of the config, for completion and checks in an editor."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter

from rtrain.config.compose.store import DEFAULT_PLUGINS, PLUGIN_GROUPS
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.validate import forbid_extra
from rtrain.config.value_types.fields import hints_of
from rtrain.config.value_types.units import PATTERNS, unit_of
from rtrain.errors import ConfigError

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(schemas: Schemas, group: str | None = None) -> dict[str, Any]:
    """Return the JSON schema of the whole config, or of the part ``group``.

    ``trainer`` and ``dataset`` are one of the plugins' schemas, told apart by the constant ``type``.

    Raises:
        ConfigError: There is no such part.
    """
    hints = hints_of(RtrainConf)
    if group is not None and group not in hints:
        raise ConfigError(f"the config has no part '{group}'; there are: {', '.join(hints)}")
    if group in PLUGIN_GROUPS:
        return {"$schema": DIALECT, "title": group, **_lifted(_any_of(schemas, group))}
    if group is not None:
        return {"$schema": DIALECT, **schema_of(hints[group])}
    return _whole(schemas)


def _whole(schemas: Schemas) -> dict[str, Any]:
    schema = schema_of(RtrainConf)
    properties = schema["properties"]
    definitions = schema.setdefault("$defs", {})
    for group in PLUGIN_GROUPS:
        part = _lifted(_any_of(schemas, group))
        definitions.update(part.pop("$defs", {}))
        description = properties[group].get("description")
        properties[group] = {**part, **({"description": description} if description else {})}
    sets = _lifted(_any_of(schemas, "datasets"))
    definitions.update(sets.pop("$defs", {}))
    properties["datasets"]["additionalProperties"] = sets
    properties["defaults"] = {
        "type": "array",
        "description": "Hydra's defaults list: the options this config is made of.",
    }
    properties["hydra"] = {"type": "object", "description": "Hydra's own settings."}
    return {"$schema": DIALECT, **schema, "title": "rtrain config"}


def _any_of(schemas: Schemas, group: str) -> dict[str, Any]:
    default = DEFAULT_PLUGINS.get(group)
    return {"anyOf": [_plugin(name, conf, optional=name == default) for name, conf in schemas.group(group).items()]}


def _plugin(name: str, conf: type, *, optional: bool) -> dict[str, Any]:
    schema = schema_of(conf)
    schema["properties"] = {"type": {"const": name, "type": "string"}, **schema.get("properties", {})}
    # A group option may set what a config leaves out: only the name of the plugin is needed in every file.
    schema["required"] = [] if optional else ["type"]
    return schema


def schema_of(conf: Any) -> dict[str, Any]:
    """Return the JSON schema of one dataclass; no key is required, because options may set what a config leaves out."""
    kind = forbid_extra(conf, docstrings=True) if isinstance(conf, type) else conf
    schema = TypeAdapter(kind).json_schema()
    if isinstance(conf, type):
        forbid_extra(conf)
        schema.pop("required", None)
        kinds = [kind for kind in hints_of(conf).values() if isinstance(kind, type) and is_dataclass(kind)]
        for node, kind in ((schema, conf), *((schema["$defs"][kind.__name__], kind) for kind in kinds)):
            for name, text in _inherited_docs(kind).items():
                node["properties"][name].setdefault("description", text)
        _take_units(schema)
    return schema


def _take_units(schema: dict[str, Any]) -> None:
    """Let keys in seconds and in bytes be texts with a unit, too."""
    for node in (schema, *schema.get("$defs", {}).values()):
        for name, value in node.get("properties", {}).items():
            unit = unit_of(name)
            kinds = value.get("anyOf", [value])
            if unit is not None and any(one.get("type") in ("number", "integer") for one in kinds):
                kept = {key: value.pop(key) for key in list(value) if key not in ("default", "description", "title")}
                value["anyOf"] = [*kept.get("anyOf", [kept]), {"type": "string", "pattern": PATTERNS[unit]}]


def _inherited_docs(conf: type) -> dict[str, str]:
    """Return the docstrings under the fields of the base classes, which pydantic leaves out."""
    found: dict[str, str] = {}
    for base in filter(is_dataclass, conf.__mro__[1:]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for field, text in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found.setdefault(field.target.id, inspect.cleandoc(ast.literal_eval(text.value)))
    return found


def _lifted(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``schema`` with the definitions of its alternatives moved up to where ``$ref`` looks for them."""
    definitions: dict[str, Any] = {}
    for one in schema["anyOf"]:
        definitions.update(one.pop("$defs", {}))
    return {**schema, **({"$defs": definitions} if definitions else {})}
