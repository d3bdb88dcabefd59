"""The JSON schemas of the conf dataclasses: a definition for each, with the docstring of each key."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter

from rtrain.config.validate import dataclasses_in, forbid_extra
from rtrain.config.value_types.units import PATTERNS, unit_of

REF = "#/$defs/"
_TEMPLATE = REF + "{model}"


def schema_of(conf: type) -> dict[str, Any]:
    """Return the JSON schema of one dataclass; no key is required, because options may set what a config leaves out."""
    names, definitions = definitions_of({"": conf})
    return {**definitions.pop(names[""]), "$defs": definitions}


def definitions_of(confs: Mapping[str, type]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the name of the definition of each dataclass, and all definitions, of those inside them too."""
    adapters: list[Any] = [(key, "validation", TypeAdapter(forbid_extra(conf))) for key, conf in confs.items()]
    schemas, whole = TypeAdapter.json_schemas(adapters, ref_template=_TEMPLATE)
    definitions = whole["$defs"]
    seen: set[type] = set()
    for conf in confs.values():
        for one in dataclasses_in(conf, seen):
            _finish(definitions[_name_of(one, definitions)], one)
    return {key: schemas[key, "validation"]["$ref"].removeprefix(REF) for key in confs}, definitions


def _name_of(conf: type, definitions: Mapping[str, Any]) -> str:
    """Return what pydantic calls the definition of a dataclass: with its module where two have one name."""
    path = re.sub(r"[^\w.-]", "_", f"{conf.__module__}.{conf.__qualname__}").replace(".", "__")
    return path if path in definitions else conf.__name__


def _finish(definition: dict[str, Any], conf: type) -> None:
    for key in ("required", "title"):
        definition.pop(key, None)
    docs = _field_docs(conf)
    for name, value in definition["properties"].items():
        value.pop("title", None)
        if name in docs:
            value.setdefault("description", docs[name])
        if (unit := unit_of(name)) is not None:
            _take_texts(value, PATTERNS[unit])


def _take_texts(value: dict[str, Any], pattern: str) -> None:
    """Let a number be a text with a unit, too."""
    kinds = value.get("anyOf", [value])
    if any(one.get("type") in ("number", "integer") for one in kinds):
        kept = {key: value.pop(key) for key in list(value) if key not in ("default", "description")}
        value["anyOf"] = [*kept.get("anyOf", [kept]), {"type": "string", "pattern": pattern}]


def _field_docs(conf: type) -> dict[str, str]:
    """Return the docstring under each field of a dataclass and of its base classes, the nearest one's first."""
    found: dict[str, str] = {}
    for one in filter(is_dataclass, conf.__mro__):
        for field, text in pairwise(_bodies(one.__module__).get(one.__qualname__, ())):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found.setdefault(field.target.id, inspect.cleandoc(ast.literal_eval(text.value)))
    return found


@cache
def _bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of each class at the top of a module; to read it for each class takes most of the time."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError):  # a dataclass that was made by a function, or a module without its source
        return {}
    return {one.name: one.body for one in tree.body if isinstance(one, ast.ClassDef)}
