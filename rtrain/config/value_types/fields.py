"""The types of a dataclass's fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from pydantic import WithJsonSchema


@lru_cache(maxsize=1000)
def hints_of(conf: type) -> Mapping[str, Any]:
    """Return the type of each field of a dataclass, which Python works out each time it is asked."""
    hints = get_type_hints(conf)
    return MappingProxyType({one.name: hints[one.name] for one in fields(conf)})


@lru_cache(maxsize=1000)
def _annotations_of(conf: type) -> Mapping[str, Any]:
    return get_type_hints(conf, include_extras=True)


def annotation_of(conf: type, name: str) -> Any:
    """Return the type of a field with what checks its values."""
    return _annotations_of(conf)[name]


def may_be_mapping(conf: type, name: str) -> bool:
    """Return whether a field takes a mapping in the place of a plain value, as the schema of its annotation says."""
    if hints_of(conf)[name] is not Any:
        return False
    kinds = get_args(_annotations_of(conf)[name])
    schemas = [one.json_schema for one in kinds if isinstance(one, WithJsonSchema)]
    return any(part.get("type") == "object" for schema in schemas if schema for part in schema.get("anyOf", ()))


def kinds_of(conf: type | None, name: str) -> tuple[Any, ...]:
    """Return the type of a field of a dataclass, and the types that it is made of, where it is a union."""
    hint = hints_of(conf).get(name) if conf is not None else None
    return hint, *get_args(hint)


def dataclasses_of(conf: type, name: str) -> Iterator[type]:
    """Yield the dataclasses that a field may hold."""
    yield from (one for one in kinds_of(conf, name) if isinstance(one, type) and is_dataclass(one))
