"""Find where a key was set: the word of the command, or the line of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from hydra.core.default_element import ResultDefault
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.aliases import GROUPS, KEYS, expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.compose.sources.config_source import RtrainSource, source_uri
from rtrain.config.diagnostics.screen import CliWord, FileLocation
from rtrain.config.files.locations import shown
from rtrain.config.files.yaml_file import YamlFile, read_yaml
from rtrain.config.secrets.masked import mask_word
from rtrain.errors import ConfigError


class SourceMap:
    """Looks keys up in what one command line made Hydra read."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._read_files: dict[Path, YamlFile | None] = {}

    def of(self, key: str) -> FileLocation | CliWord | None:
        """Return the place that set ``key`` last: later words win over earlier ones, and words over files."""
        key = re.sub(r"\[(\d+)\]", r".\1", key)  # an item of a list: betas[1]
        typed = self._typed_key(key)
        if typed is not None:
            return typed
        path = self.request.swept.get(key)
        if path is not None:
            typed = self._typed_key(".".join(path))
            return typed if typed is not None and path[-1] in typed.command[typed.index] else self._in_files(path)
        whole = re.sub(r"(\.\d+)+$", "", key)  # the list of an item that has no line
        return self._in_files(key.split(".")) or (self._in_files(whole.split(".")) if whole != key else None)

    def _typed_key(self, key: str) -> CliWord | None:
        for word in reversed(self.request.words):
            own = word.key.replace("/", ".")
            if key == own or (key.startswith(f"{own}.") and not self.request.is_choice(word)):
                return self._typed(word.origin)
        return None

    def _in_files(self, path: Sequence[str]) -> FileLocation | None:
        for default in reversed(self._defaults):
            package = default.package.split(".") if default.package else []
            if list(path[: len(package)]) == package:
                spot = self._in_file(default.config_path or "", list(path[len(package) :]))
                if spot is not None:
                    return spot
        return None

    def of_choice(self, key: str) -> FileLocation | None:
        """Return the entry of a defaults list that chose the option whose keys stand at ``key``."""
        for default in reversed(self._defaults):
            if default.package == key and default.parent and default.config_path:
                group, _, option = default.config_path.rpartition("/")
                spot = self.word_in(default.parent, f"{group.rpartition('/')[2]}: {option}")
                if spot is not None:
                    return spot
        return None

    def of_word(self, text: str) -> CliWord | None:
        """Return the user's word that Hydra knows as ``text``; by its key, if a sweep made it of the user's word."""
        key = split_word(text)[1]
        words = self.request.words
        found = [word for word in words if word.text == text] or [word for word in words if word.key == key]
        return self._typed(found[0].origin) if found else None

    def in_config(self, config_path: str, key: str) -> FileLocation | None:
        """Return where ``key``, or as much of its end as the file spells out, stands in the config ``config_path``."""
        parts = key.split(".")
        for start in range(len(parts)):
            spot = self._in_file(config_path, parts[start:])
            if spot is not None:
                return spot
        return None

    def word_in(self, config_path: str, word: str) -> FileLocation | None:
        """Return the first line of a config that has ``word``, for what has no key: an entry of a defaults list."""
        path = self.file_of(config_path)
        if path is None:
            return None
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.split("\n")):
            column = line.find(word)
            if column >= 0 and not line.lstrip().startswith("#"):
                return FileLocation(shown(path), text, number, column, len(word))
        return None

    def entry(self, config_path: str, name: str) -> FileLocation | None:
        """Return where the defaults list of a config has the entry ``- name`` or ``- name: OPTION``."""
        path = self.file_of(config_path)
        text = "" if path is None else path.read_text(encoding="utf-8")
        found = re.search(rf"(?m)^\s*- (?P<entry>{re.escape(name)})\s*(:|$)", text)
        if path is None or found is None:
            return None
        before = text[: found.start("entry")].split("\n")
        return FileLocation(shown(path), text, len(before) - 1, len(before[-1]), len(name))

    def file_of(self, config_path: str) -> Path | None:
        """Return the file of a config: the first one on the search path."""
        return next((path for path in self._files(config_path) if path.is_file()), None)

    def _in_file(self, config_path: str, keys: list[str]) -> FileLocation | None:
        path = self.file_of(config_path)
        if path is None or not keys:
            return None
        file = self._read(path)
        if file is None:
            return None
        full = ".".join(keys)
        shorts = [short for short in (*KEYS, *GROUPS) if f"{full}.".startswith(f"{expand_key(short)}.")]
        spellings = [keys, *([short, *full[len(expand_key(short)) :].split(".")[1:]] for short in shorts)]
        return next((spot for spot in map(file.spot, spellings) if spot is not None), None)

    def _read(self, path: Path) -> YamlFile | None:
        if path not in self._read_files:
            try:
                self._read_files[path] = read_yaml(path)[1]
            except ConfigError:
                self._read_files[path] = None
        return self._read_files[path]

    def _files(self, config_path: str) -> Iterator[Path]:
        for source in self.request.app.sources:
            if isinstance(source, RtrainSource):
                yield source.file_of(config_path)
        for folder in self.request.searched:
            yield RtrainSource("searchpath", source_uri(Path(folder))).file_of(config_path)

    @cached_property
    def _defaults(self) -> list[ResultDefault]:
        """The configs that are merged, in order."""
        choices = [word.text for word in self.request.words if self.request.is_choice(word)]
        for words in (choices, []):
            try:
                return self.request.app.defaults(words)
            except (HydraException, OmegaConfBaseException, ValueError, ConfigError):
                continue
        return [ResultDefault(config_path=self.request.primary.name, package="")]

    def _typed(self, origin: int) -> CliWord:
        command = [mask_word(word) for word in self.request.command]
        return CliWord(command, len(command) - len(self.request.overrides) + origin, self.request.call)
