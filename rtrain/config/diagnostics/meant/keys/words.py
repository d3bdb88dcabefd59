"""What users of other tools call the keys of rtrain.

The words for the keys of a dataclass stand next to the module that defines it: those for ``schema.py`` in
``schema.words.yaml``, by the name of the class. Those for the arguments of a ``_target_`` stand in
``targets.words.yaml``, by its dotted path. They are read when a key is wrong.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rtrain.config.did_you_mean import did_you_mean, nearest_or_all, plain
from rtrain.errors import ConfigError

ENDING = ".words.yaml"
NOT = ("false", "no", "off", "0", "none", "null")
"""Values that switch something off."""


@dataclass(frozen=True)
class Meaning:
    """What a word of another tool is here: a key, maybe with another value, or one sentence."""

    key: str = ""
    """With dots, from the root; empty where ``sentence`` says it all."""
    value: str | None = None
    """Instead of what the user gave; None: as given."""
    sentence: str | None = None


class Words:
    """The words of other tools for the keys of one dataclass.

    Args:
        keys: Names, separated by blanks, by the key that they mean, with dots for what is below it. ``key=value``: each
            is a switch that is this value of the key. A name may say for which value it holds: ``save_freq=epoch``, or
            for which files: ``load_from=*.pth``.
        values: By key, what other tools call its values: names by the value.
        says: ``names``, and the sentence that they get, ``say``, where there is no one key; ``fp8_*`` is all names that
            begin so. ``*wandb*`` is a topic, of all names that have the word in them and mean nothing else.
    """

    def __init__(
        self,
        keys: Mapping[str, str] | None = None,
        values: Mapping[str, Mapping[str, str]] | None = None,
        says: list[Mapping[str, str]] | None = None,
    ) -> None:
        self.keys = {_named(name): key for key, names in (keys or {}).items() for name in names.split()}
        self.values = {
            key: {name.casefold(): value for value, names in by_value.items() for name in [value, *names.split()]}
            for key, by_value in (values or {}).items()
        }
        said = [(name, one["say"]) for one in says or [] for name in one["names"].split()]
        self.sentences = {_named(name): say for name, say in said if not name.endswith("*")}
        self._topics = {_whole_parts(name.strip("*")): say for name, say in said if name.startswith("*")}
        self._beginnings = {plain(name): say for name, say in said if name.endswith("*") and name[0] != "*"}
        lists = [*(keys or {}).values(), *(one["names"] for one in says or [])]
        written = [name for names in lists for name in names.split()]
        self._sectioned = {_with_dots(name) for name in written if "." in name}
        self._written = [name.partition("=")[0].rpartition(".") for name in written if not name.endswith("*")]

    def names_in(self, section: str) -> list[str]:
        """Return all names, as they are written, but those that hold in other sections than ``section`` only."""
        ends = {"", _with_dots(section), *map(plain, section.split(".")[-1:])}
        return [name for where, _, name in self._written if _with_dots(where) in ends]

    def is_key(self, name: str) -> bool:
        """Tell whether a name that is written here means a key, whatever its value."""
        return plain(name) in self.keys

    def meaning(self, name: str, value: str | None, where: str) -> Meaning | None:
        """Return what ``name``, given ``value``, means for the dataclass at the key ``where``; None if unknown."""
        names = (*_of_values(name, value or ""), plain(name))
        sentence = next((self.sentences[one] for one in names if one in self.sentences), None)
        if sentence is not None and names[0] not in self.keys:
            return Meaning(sentence=sentence)
        key, _, fixed = next((self.keys[one] for one in names if one in self.keys), "").partition("=")
        if not key:
            return None
        full = f"{where}.{key}" if where else key
        if not fixed:
            return Meaning(full, self.translated(key, value))
        if names[0] in self.keys or value is None or value.casefold() not in NOT:
            return Meaning(full, fixed)
        return Meaning(sentence=f"remove it: {full} decides, and {fixed} is off by default")

    def beginning(self, name: str) -> Meaning | None:
        """Return the sentence for all names that begin like ``name``; None if there is none."""
        said = next((say for start, say in self._beginnings.items() if plain(name).startswith(start)), None)
        return None if said is None else Meaning(sentence=said)

    def topic(self, name: str) -> str | None:
        """Return the sentence for all names about the same as ``name``; None if there is none."""
        written, bare = f"_{name.casefold()}_", plain(name)
        return next((say for word, say in self._topics.items() if word in (written if "_" in word else bare)), None)

    def has(self, name: str, value: str | None) -> bool:
        """Tell whether ``name`` is here with the section that it has, or for this very value."""
        if any(one in self.keys or one in self.sentences for one in _of_values(name, value or "")):
            return True
        whole = plain(name)
        return "." in name and (_with_dots(name) in self._sectioned or whole in self.keys or whole in self.sentences)

    def about(self, name: str, value: str) -> str | None:
        """Return the sentence about this very value of ``name``; None if there is none."""
        return next((self.sentences[one] for one in _of_values(name, value) if one in self.sentences), None)

    def translated(self, key: str, value: str | None) -> str | None:
        """Return rtrain's word for a value of ``key``; None if it is the same."""
        found = self.values.get(key, {}).get(value.casefold()) if value is not None else None
        return found if found != value else None


def meaning_in(conf: type, name: str, value: object, where: str) -> Meaning | None:
    """Return what ``name``, given ``value``, means for a dataclass of keys at the key ``where``; None if unknown."""
    found = (words.meaning(name, str(value), where) for words in words_of(conf))
    return next((one for one in found if one is not None), None)


def hint_about(conf: type, key: str, value: object, known: Collection[str]) -> str:
    """Return the hint of an error about an argument that a library lacks: what is meant by it, else the nearest one.

    Args:
        conf: The dataclass of keys that has the arguments below one of them.
        key: The argument in full, ``trainer.arguments.lr``.
        value: What was given.
        known: The arguments that the library has.
    """
    where, section, name = key.rsplit(".", 2)
    for one in (f"{section}.{name}", name):
        meant = meaning_in(conf, one, value, where)
        if meant is not None and meant.sentence is not None:
            return meant.sentence
        inside, _, last = (meant.key if meant is not None else key).rpartition(".")
        if meant is not None and (inside != f"{where}.{section}" or last in known):
            return did_you_mean(meant.key if meant.value is None else f"{meant.key}={meant.value}")
    return nearest_or_all(name, known)


def translated(key: str, value: str | None, confs: Iterable[tuple[str, type]]) -> str | None:
    """Return rtrain's word for the value of a full key, by the words for the keys of some dataclasses."""
    for where, conf in confs:
        own = key.removeprefix(f"{where}.") if where else key
        found = [one for words in words_of(conf) if (one := words.translated(own, value)) is not None]
        if found:
            return found[0]
    return None


def sentence_about(key: str, value: str | None, confs: Iterable[tuple[str, type]]) -> str | None:
    """Return the sentence about this very value of a full key; None if there is none."""
    for where, conf in confs if value else ():
        own = key.removeprefix(f"{where}.") if where else key
        for words in words_of(conf):
            said = next((one for name in (key, own) if (one := words.about(name, value or "")) is not None), None)
            if said is not None:
                return said
    return None


def _named(name: str) -> str:
    """Return a name of a list of words as it is looked up; it may say for which value it holds."""
    key, sign, value = name.partition("=")
    return _of_value(key, value) if sign else plain(name)


def _whole_parts(word: str) -> str:
    """Return the word of a topic, with a sign where a part of a name has to begin or end: ``val_``."""
    return f"{'_' if word.endswith('_') else ''}{word}{'_' if word.startswith('_') else ''}"


def _with_dots(name: str) -> str:
    return ".".join(map(plain, name.partition("=")[0].split(".")))


def _of_value(name: str, value: str) -> str:
    return f"{plain(name)}={value.casefold()}"


def _of_values(name: str, value: str) -> list[str]:
    """Return how a name with a value is looked up: as it is, then by the kind of file that the value names."""
    ending = re.search(r"\.\w+$", value)
    return [_of_value(name, value), *([_of_value(name, f"*{ending[0]}")] if ending else [])]


def words_of(conf: type) -> Iterator[Words]:
    """Yield the words for the keys of a dataclass, then those for the keys of its bases."""
    for one in conf.__mro__[:-1]:
        found = _read(Path(inspect.getfile(one)).with_suffix(ENDING)).get(one.__name__)
        if found is not None:
            yield found


def words_of_target(target: str) -> Iterator[Words]:
    """Yield the words for the arguments of a ``_target_``, then those for all that its module has."""
    known = _read(Path(__file__).with_name(f"targets{ENDING}"))
    while target:
        if target in known:
            yield known[target]
        target = target.rpartition(".")[0]


@cache
def _read(path: Path) -> Mapping[str, Words]:
    if not path.is_file():
        return {}
    try:
        data: Mapping[str, Mapping[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
        return {name: Words(**sections) for name, sections in data.items()}
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        message = f"{path} can't be read: {' '.join(str(error).split())}"
        raise ConfigError(message, "For its format, see docs/plugins.md, 'The loop'.") from error
