"""Read one YAML file: bounded in size, without duplicate keys, each key with its line."""

from __future__ import annotations

import codecs
import pickle
import shlex
import stat
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf._utils import get_yaml_loader

from rtrain.config.diagnostics.screen import FileLocation, render
from rtrain.config.did_you_mean import to_try
from rtrain.config.files.limits import MAX_BYTES, MAX_DEPTH, MAX_KEY, MAX_NODES, MAX_REFERENCES_OF_TEXT, MAX_TEXT
from rtrain.config.files.locations import shown
from rtrain.config.files.yaml_syntax import no_mapping, syntax_error
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.plain_files import described

N = TypeVar("N", bound=yaml.Node)


@dataclass(frozen=True)
class YamlFile:
    """The text of a file and the syntax tree of its one document."""

    path: Path
    text: str
    root: yaml.Node | None

    def spot(self, keys: Sequence[str]) -> FileLocation | None:
        """Return where the key path ``keys`` stands in the file, or None."""
        node, mark = self.root, None
        for key in keys:
            entry = _entry(node, key)
            if entry is None:
                return None
            mark, node = entry
        return None if mark is None else replace(self.spot_of(mark), value=self._in_one_line(node))

    def _in_one_line(self, node: yaml.Node | None) -> str | None:
        """Return a value as it would be typed; None for one of several lines."""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        if not isinstance(node, yaml.CollectionNode) or not node.flow_style:
            return None
        text = self.text[node.start_mark.index : node.end_mark.index]
        return None if "\n" in text else text

    def spot_of(self, node: yaml.Node) -> FileLocation:
        """Return where ``node`` stands in the file."""
        start, end = node.start_mark, node.end_mark
        width = end.column - start.column if end.line == start.line else 1
        return FileLocation(shown(self.path), self.text, start.line, start.column, max(width, 1))


def read_yaml(path: Path) -> tuple[dict[str, Any], YamlFile]:
    """Return the mapping in ``path`` as plain data, and the file with its lines.

    Raises:
        ConfigError: The file can't be read, is not YAML, is too big once expanded, or is not a mapping.
    """
    data, file = _parsed(path, _read_text(path))
    return pickle.loads(data), file


@lru_cache(maxsize=200)
def _parsed(path: Path, text: str) -> tuple[bytes, YamlFile]:
    """Return the lines of a file and its data, pickled: each caller changes a copy."""
    _refuse_unprintable(path, text)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        file = YamlFile(path, loader.text, root)
        if root is None:
            return pickle.dumps({}), file
        _check(file, root)
        data = loader.construct_document(root)
    except _TooDeepError as error:
        message = f"mappings and lists are nested more than {MAX_DEPTH} deep"
        raise ConfigError(
            render(message, spot=FileLocation(shown(path), text, error.mark.line, error.mark.column, 1))
        ) from None
    except yaml.MarkedYAMLError as error:
        raise syntax_error(path, loader.text, error) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{shown(path)} is not valid YAML: {error}") from None
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise no_mapping(path, file.text, file.spot_of(root), data)
    return pickle.dumps(data), file


class _Loader(get_yaml_loader()):  # type: ignore[misc]  # OmegaConf's: YAML 1.1 with floats like 1e-3
    """OmegaConf's loader, with the text kept for messages."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text, self._depth = text, 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; refuse one that lies too deep before Python's stack ends."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeepError(self.peek_event().start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _TooDeepError(Exception):
    def __init__(self, mark: yaml.Mark) -> None:
        super().__init__(str(mark))
        self.mark = mark


def _refuse_unprintable(path: Path, text: str) -> None:
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if found:
        before = text[: found.start()]
        spot = FileLocation(shown(path), text, before.count("\n"), found.start() - before.rfind("\n") - 1, 1)
        message = f"a config is text: it can't contain the character {found[0]!r}"
        raise ConfigError(render(message, spot=spot))


def _read_text(path: Path) -> str:
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise ConfigError(f"{shown(path)} is {described(facts.st_mode)}, not a file.")
        if (size := facts.st_size) > MAX_BYTES:
            raise ConfigError(f"{shown(path)} has {size} bytes; the maximum for a config is {MAX_BYTES}.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None
    except OSError as error:
        raise ConfigError(f"{shown(path)} can't be read: {(error.strerror or str(error)).lower()}.") from None


def _not_utf8(path: Path, error: UnicodeDecodeError) -> ConfigError:
    before = error.object[: error.start]
    encoding = "UTF-16" if error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "LATIN1"
    place = f"{shown(path)}:{before.count(10) + 1}"
    attempt = f"iconv -f {encoding} -t UTF-8 {shlex.quote(shown(path))} > {shlex.quote(path.stem)}-utf8.yaml"
    return ConfigError(f"{place} is not UTF-8 text (byte {error.start}).", "  " + to_try(attempt))


def _check(file: YamlFile, root: yaml.Node) -> None:
    """Refuse a file whose aliases expand without bounds, and a key that stands twice in one mapping."""
    _count_nodes(file, root, {}, set())
    for scalar in _nodes(yaml.ScalarNode, root, set()):
        if scalar.value.count("${") > MAX_REFERENCES_OF_TEXT:
            message = f"a value contains more than {MAX_REFERENCES_OF_TEXT} references"
            raise ConfigError(render(message, spot=file.spot_of(scalar)))
        if "${" in scalar.value and len(scalar.value) > MAX_TEXT:
            message = f"a value with references has more than {MAX_TEXT:,} characters"
            raise ConfigError(render(message, spot=file.spot_of(scalar)))
    for mapping in _nodes(yaml.MappingNode, root, set()):
        first: dict[Hashable, yaml.Node] = {}
        for key, _ in mapping.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if len(key.value) > MAX_KEY:
                message = f"a key has {len(key.value):,} characters; the maximum is {MAX_KEY:,}"
                raise ConfigError(render(message, spot=file.spot_of(key)))
            if key.value in first:
                line = first[key.value].start_mark.line + 1
                message = f"the key '{key.value}' is defined twice, first on line {line}"
                raise ConfigError(render(message, spot=file.spot_of(key)), "  keep only one of them, with all its keys")
            first[key.value] = key


def _count_nodes(file: YamlFile, node: yaml.Node, sizes: dict[int, int], open_nodes: set[int]) -> int:
    """Return the number of nodes below ``node`` with all aliases expanded; refuse a loop and too many."""
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in open_nodes:
        raise ConfigError(render("an alias refers to the mapping or list that contains it", spot=file.spot_of(node)))
    open_nodes.add(id(node))
    size = 1 + sum(_count_nodes(file, child, sizes, open_nodes) for child in _children(node))
    open_nodes.discard(id(node))
    if size > MAX_NODES:
        message = f"aliases expand this file to more than {MAX_NODES} values"
        raise ConfigError(render(message, spot=file.spot_of(node)))
    sizes[id(node)] = size
    return size


def _nodes(kind: type[N], node: yaml.Node, seen: set[int]) -> Iterator[N]:
    """Yield the nodes of a kind, each once: an alias leads to what it names again."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, kind):
        yield node
    for child in _children(node):
        yield from _nodes(kind, child, seen)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _entry(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the key node and the value node of ``key`` below ``node``."""
    if isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
        return node.value[int(key)], node.value[int(key)]
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((one, value) for one, value in node.value if one.value == key), None)
