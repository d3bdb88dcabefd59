"""What a config and the overrides after it choose, read from the files alone: composing takes too long for a TAB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from rtrain.config.compose.aliases import GROUPS, KEYS, expand_key, split_word
from rtrain.config.files.group_options import option_files, plugin_of
from rtrain.config.files.limits import MAX_BYTES
from rtrain.config.files.locations import find_primary, search_folders


@dataclass
class Chosen:
    """The options of the config groups, and what the files say."""

    folders: list[Path]
    options: dict[str, str] = field(default_factory=dict)
    """The chosen option by group."""
    typed: set[str] = field(default_factory=set)
    """The groups whose options overrides choose: they take the place of what files say."""
    contents: list[Mapping[str, Any]] = field(default_factory=list)
    """What the config and those that it includes hold, with full keys; the last one wins."""

    @classmethod
    def by(cls, config: str, overrides: Sequence[str]) -> Chosen:
        """Return what a config and overrides choose.

        Raises:
            ConfigError: There is no such config.
        """
        primary = find_primary(config)
        found = cls([folder for _, folder in search_folders(primary, None)])
        found._read(primary.path, set())
        for word in overrides:
            _, key, value = split_word(word)
            if GROUPS.get(key, key) in found.files and value:
                found.typed.add(GROUPS.get(key, key))
                found._choose(GROUPS.get(key, key), value, set())
            elif key.endswith(".type") and value:
                found.contents.append(_nested(key, value))
        return found

    @cached_property
    def files(self) -> dict[str, dict[str, Path]]:
        """The file of each option, by group and name."""
        return option_files(self.folders)

    def plugin(self, group: str, known: Sequence[str]) -> str | None:
        """Return the plugin of a section; None if the files alone don't say."""
        given = [one for one in self.at([group, "type"]) if isinstance(one, str)]
        option = self.options.get(group)
        path = self.files.get(group, {}).get(option or "")
        name = given[-1] if given else plugin_of(path) if path is not None else option
        return name if name in known else None

    def names_at(self, keys: Sequence[str]) -> Iterator[str]:
        """Yield the keys that the files have in a mapping."""
        for one in self.at(keys):
            if isinstance(one, Mapping):
                yield from map(str, one)

    def at(self, keys: Sequence[str]) -> Iterator[Any]:
        """Yield what the files say at a place: those of the options that are chosen first."""
        for length in range(1, len(keys) + 1):
            group = "/".join(keys[:length])
            path = self.files.get(group, {}).get(self.options.get(group, ""))
            if path is not None:
                yield from _inside(_load(path), keys[length:])
        for content in self.contents:
            if not self._is_replaced(content, keys):
                yield from _inside(content, keys)

    def _is_replaced(self, content: Mapping[str, Any], keys: Sequence[str]) -> bool:
        """Tell whether a typed option takes the place of a section, or of one around it, that says what it is."""
        for length in range(1, len(keys) + 1):
            if "/".join(keys[:length]) in self.typed:
                node: Any = next(_inside(content, keys[:length]), {})
                if isinstance(node, Mapping) and {"type", "_target_"} & set(node):
                    return True
        return False

    def _choose(self, group: str, option: str, seen: set[Path]) -> None:
        """Choose an option, after those that its own defaults list names; files in ``seen`` are not read again."""
        path = self.files.get(group, {}).get(option)
        defaults = None
        if path is not None and path not in seen:
            seen.add(path)
            defaults = _load(path).get("defaults")
        for entry in defaults if isinstance(defaults, list) else ():
            if isinstance(entry, Mapping):
                for key, inner in entry.items():
                    name = str(key).split(" ")[-1]
                    self._choose(name[1:] if name.startswith("/") else f"{group}/{name}", str(inner), seen)
            elif isinstance(entry, str):
                self._choose(group, entry, seen)
        self.options[group] = option

    def _read(self, path: Path, seen: set[Path]) -> None:
        """Read a config, after those that it includes; each file once."""
        seen.add(path)
        data = _load(path)
        defaults = data.get("defaults")
        for entry in defaults if isinstance(defaults, list) else ():
            if isinstance(entry, Mapping):
                for key, option in entry.items():
                    group = str(key).split(" ")[-1].lstrip("/")
                    self._choose(GROUPS.get(group, group), str(option), set())
            elif isinstance(entry, str) and "/" not in entry:
                file = next((one for folder in self.folders if (one := folder / f"{entry}.yaml").is_file()), None)
                if file is not None and file not in seen:
                    self._read(file, seen)
        shorts = [key for key in data if key in KEYS or key in GROUPS]
        self.contents += [_nested(expand_key(key), data[key]) for key in shorts]
        self.contents.append(data)


def _load(path: Path) -> Mapping[str, Any]:
    """Return what a YAML file holds; nothing if it can't be read now, as while it is being written."""
    try:
        text = path.read_text(encoding="utf-8") if path.stat().st_size <= MAX_BYTES else ""
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return data if isinstance(data, Mapping) else {}


def _inside(node: Any, keys: Sequence[str]) -> Iterator[Any]:
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    if node is not None:
        yield node


def _nested(key: str, value: Any) -> Mapping[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    assert isinstance(value, Mapping)
    return value
