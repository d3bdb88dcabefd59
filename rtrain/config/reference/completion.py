"""Tab completion of overrides: groups, options, keys, values and short names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rtrain.config.compose.aliases import FREE, GROUPS, KEYS, expand_key, split_word
from rtrain.config.files.group_options import files_at
from rtrain.config.reference.chosen import Chosen
from rtrain.errors import ConfigError

ANY = "any"
"""The section with the keys of all plugins."""


def complete(
    words: Sequence[str],
    incomplete: str,
    index: Mapping[str, Any],
    parameters: Callable[[str], Iterable[str]] = lambda trainer: (),
) -> list[str]:
    """Return what may stand where ``incomplete`` stands.

    Args:
        words: The config and the overrides typed so far.
        incomplete: The beginning of the word at the cursor.
        index: What ``key_index`` returns.
        parameters: Returns the names of the parameters of a trainer's library.
    """
    if not words:
        return []
    try:
        chosen = Chosen.by(words[0], words[1:])
    except ConfigError:
        return []
    found = sorted(set(_candidates(chosen, index, incomplete, parameters)))
    return [one for one in found if one.startswith(incomplete)]


def _candidates(
    chosen: Chosen, index: Mapping[str, Any], incomplete: str, parameters: Callable[[str], Iterable[str]]
) -> Iterator[str]:
    sign, key, value = split_word(incomplete)
    if value is not None:
        last = value.rpartition(",")[2]
        head = incomplete[: len(incomplete) - len(last)]
        yield from (f"{head}{one}" for one in _values(chosen, index, key, last))
        return
    ending = "" if sign == "~" else "="  # what is removed needs no value
    if "." not in key:
        groups = [*chosen.files, *(one for one in index["plugins"] if one in index["root"])]
        for name in (*groups, *KEYS, *(short for short, group in GROUPS.items() if group in chosen.files)):
            yield f"{sign}{name}{ending}"
    parent = key.rpartition(".")[0]
    full = expand_key(parent)
    inside = f"{parent}." if parent else ""
    for name, following in _keys(chosen, index, full.split(".") if full else []).items():
        deeper = {"section", "keys", "free", "plugin"} & set(following)
        if deeper:
            yield f"{sign}{inside}{name}."
        if not deeper or not following.get("closed", "plugin" in following):
            yield f"{sign}{inside}{name}{ending}"
    if f"{full}." == FREE:
        trainer = chosen.plugin("trainer", index["plugins"]["trainer"])
        yield from (f"{sign}{inside}{name}{ending}" for name in (parameters(trainer) if trainer else ()))


def _keys(chosen: Chosen, index: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return what may follow each key of the mapping at a place."""
    node: Mapping[str, Any] = {"keys": index["root"]}
    for key in keys:
        node = _inside(chosen, index, node).get(key, {})
        if not node:
            break
    inside = _inside(chosen, index, node)
    written: dict[str, Any] = {name: {} for name in chosen.names_at(keys) if keys and (not inside or node.get("free"))}
    return {**written, **inside}


def _inside(chosen: Chosen, index: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known keys of a mapping."""
    section = node.get("section")
    if "plugin" in node:
        group = node["plugin"]
        section = f"{group}.{chosen.plugin(group, index['plugins'][group]) or ANY}"
    if section is not None:
        return dict(index["sections"].get(section) or index["sections"][f"{section}.{ANY}"])
    return dict(node.get("keys", {}))


def _values(chosen: Chosen, index: Mapping[str, Any], key: str, typed: str) -> Iterable[str]:
    """Return the options of a group, or the values that a key can have; files for a key of a path."""
    group = GROUPS.get(key, key)
    options = {*chosen.files.get(group, ()), *(index["plugins"].get(group, ()) if group in index["root"] else ())}
    if options:
        return options
    *parents, name = expand_key(key).split(".")
    if name == "type" and "/".join(parents) in index["plugins"]:
        return [str(one) for one in index["plugins"]["/".join(parents)]]
    if name == "path" or name.endswith(("_dir", "_path")):
        return files_at(typed)
    return [str(one) for one in _keys(chosen, index, parents).get(name, {}).get("values", ())]
