"""Numbers as keys of a config, ``{0: 1, 4: 2}``: JSON has texts alone, so ``about.json`` says which were numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

Path = tuple[str, ...]
NAMED: dict[str, Any] = {"True": True, "False": False, "None": None}


def paths_of_number_keys(node: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each key of a config that is a number, True, False or None; lists have places as keys."""
    for key, value in _items(node):
        if isinstance(node, Mapping) and not isinstance(key, str):
            yield (*path, str(key))
        yield from paths_of_number_keys(value, (*path, str(key)))


def with_number_keys(node: Any, paths: Sequence[Path]) -> Any:
    """Return plain data in which the keys at ``paths`` are numbers again; a path that leads nowhere is left alone."""
    if not paths or not isinstance(node, Mapping | list):
        return node
    here = {path[0] for path in paths if len(path) == 1}
    found = {
        _number(key) if key in here else key: with_number_keys(
            value, [path[1:] for path in paths if len(path) > 1 and path[0] == str(key)]
        )
        for key, value in _items(node)
    }
    return found if isinstance(node, Mapping) else list(found.values())


def _number(text: Any) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return NAMED.get(text, text)


def _items(node: Any) -> list[tuple[Any, Any]]:
    if is_dataclass(node):
        return [(one.name, getattr(node, one.name)) for one in fields(node)]
    if isinstance(node, Mapping):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, list | tuple) else []
