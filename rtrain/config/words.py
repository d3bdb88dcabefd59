"""What users of other tools call the keys of rtrain.

The words for the keys of a dataclass stand beside the module that defines it: those for ``schema.py`` in
``schema.words.yaml``, by the name of the class. They are read when a key is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rtrain.config.closest import plain

ENDING = ".words.yaml"
ON = ("true", "yes", "on", "1")
"""Values that switch something on."""


@dataclass(frozen=True)
class Meaning:
    """What a word of another tool is here: a key, maybe with a value of its own, or one sentence."""

    key: str = ""
    """With dots, from the root; empty where ``sentence`` says it all."""
    value: str | None = None
    """Instead of what the user gave; None: as given."""
    sentence: str | None = None


class Words:
    """The words of other tools for the keys of one dataclass.

    Args:
        keys: Names, separated by blanks, by the key that they mean, with dots for what is below it. ``key=value``: each
            is a switch that is this value of the key.
        values: By key, what other tools call its values: names by the value.
        says: ``names``, and the sentence that they get, ``say``, where there is no one key.
    """

    def __init__(
        self,
        keys: Mapping[str, str] | None = None,
        values: Mapping[str, Mapping[str, str]] | None = None,
        says: list[Mapping[str, str]] | None = None,
    ) -> None:
        self.keys = {plain(name): key for key, names in (keys or {}).items() for name in names.split()}
        self.values = {
            key: {name.casefold(): value for value, names in by_value.items() for name in names.split()}
            for key, by_value in (values or {}).items()
        }
        self.sentences = {plain(name): one["say"] for one in says or [] for name in one["names"].split()}

    def meaning(self, name: str, value: str | None, where: str) -> Meaning | None:
        """Return what ``name``, given ``value``, means for the dataclass at the key ``where``; None if unknown."""
        name = plain(name)
        if name in self.sentences:
            return Meaning(sentence=self.sentences[name])
        key, _, switched = self.keys.get(name, "").partition("=")
        if not key:
            return None
        full = f"{where}.{key}" if where else key
        if not switched:
            return Meaning(full, self.translated(key, value))
        if value is None or value.casefold() in ON:
            return Meaning(full, switched)
        return Meaning(sentence=f"leave it out: {full} decides, and {switched} has to be asked for")

    def translated(self, key: str, value: str | None) -> str | None:
        """Return rtrain's word for a value of ``key``; None if it is the same."""
        return None if value is None else self.values.get(key, {}).get(value.casefold())


def words_of(conf: type) -> Iterator[Words]:
    """Yield the words for the keys of a dataclass, then those for the keys of its bases."""
    for one in conf.__mro__[:-1]:
        found = _read(Path(inspect.getfile(one)).with_suffix(ENDING)).get(one.__name__)
        if found is not None:
            yield found


@cache
def _read(path: Path) -> Mapping[str, Words]:
    if not path.is_file():
        return {}
    data: Mapping[str, Mapping[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    return {name: Words(**sections) for name, sections in data.items()}
