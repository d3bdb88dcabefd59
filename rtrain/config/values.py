"""A value that can't be: the words that may have been meant by it, each checked before it is shown.

A dataclass of keys says two things that its types do not tell: ``scalar``, the key that is meant where the section
itself is given one value, and ``counterparts``, which key takes a share of what another one counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from rtrain.config.aliases import expand_key, split_word
from rtrain.config.data_files import words_for
from rtrain.config.finding import command_with
from rtrain.config.hints import hints_of
from rtrain.config.request import Request
from rtrain.config.screen import Typed
from rtrain.config.wrong_keys import Check

_THOUSANDS = {"k": 10**3, "m": 10**6}
_CLASS = re.compile(r"[^\W\d]\w*([.:][^\W\d]\w*)+")
MOST_LISTED = 8
"""Most keys of a section that a message lists."""
MOST_TRIED = 4
"""Most words that are checked, each by composing the config once."""


class Values:
    """Finds what was meant by a wrong value.

    Args:
        request: What was asked for.
        confs: The dataclasses of keys, each by the key at which it stands.
        check: Composes and checks the config under other overrides.
    """

    def __init__(self, request: Request, confs: Sequence[tuple[str, type]], check: Check) -> None:
        self._request, self._confs, self._check = request, confs, check

    def corrected(self, key: str, place: Typed) -> str | None:
        """Return the user's command with the value that was probably meant for ``key``; None if there is none."""
        typed = place.command[place.index]
        sign, own_key, value = split_word(typed)
        is_whole = expand_key(own_key).replace("/", ".") == key
        if value is None or not is_whole or typed != self._request.overrides[self._position(place)]:
            return None  # one of several values of a word, or a secret
        words = [f"{sign}{word}" for word in self._words(key, own_key, value)]
        return self.checked(place, *words[:MOST_TRIED])

    def checked(self, place: Typed, *words: str | Sequence[str]) -> str | None:
        """Return the user's command with the first of ``words`` that passes the checks; None if none does.

        Args:
            place: The wrong word.
            words: Each may come in its place; also several together.
        """
        position = self._position(place)
        for one in words:
            new = [one] if isinstance(one, str) else list(one)
            overrides = list(self._request.overrides)
            overrides[position : position + 1] = new
            if self._check(overrides) is None:
                return command_with(place, *new)
        return None

    def for_option(self, group: str, option: str, place: Typed) -> str | None:
        """Return the command for what is not an option of a config group: a class, a data file, or one value of it."""
        own_key = split_word(place.command[place.index])[1]
        has_label = any(word.key == "dataset.label" for word in self._request.words)
        data = words_for(option, has_label) if group == "dataset" else None
        if data is not None:
            return self.checked(place, data, data[:2])
        if _CLASS.fullmatch(option):
            return self.checked(place, f"{own_key}={{_target_: {option}}}")  # without arguments of what was there
        return self.corrected(group.replace("/", "."), place) if _number(option) is not None else None

    def keys_of(self, section: str) -> str | None:
        """Return the line that says which keys a section has, for a value in its place; None if it is not a section."""
        conf = dict(self._confs).get(section)
        if conf is None:
            return None
        names = _names(conf)
        return f"it has keys of its own: {', '.join(names[:MOST_LISTED])}{', ...' if len(names) > MOST_LISTED else ''}"

    def _position(self, place: Typed) -> int:
        return place.index - (len(self._request.command) - len(self._request.overrides))

    def _words(self, key: str, shown: str, value: str) -> Iterator[str]:
        conf = dict(self._confs).get(key)
        if conf is not None:
            yield from _for_section(conf, shown, value)
            return
        section, _, name = shown.rpartition(".")
        owner = dict(self._confs).get(key.rpartition(".")[0])
        other = getattr(owner, "counterparts", {}).get(key.rpartition(".")[2])
        if other is not None and name and _number(value) is not None:
            yield f"{section}.{other}={value}" if section else f"{other}={value}"
        yield from (f"{shown}={one}" for one in _similar(value))


def _for_section(conf: type, shown: str, value: str) -> Iterator[str]:
    """Yield the words that set one key of a section, the declared one first, then those whose type fits."""
    if value in ("true", "false"):
        yield f"{shown}={{}}" if value == "true" else f"{shown}=null"
        return
    hints = hints_of(conf)
    wanted: tuple[type, ...] = (str,) if _number(value) is None else (int, float)
    if _number(value) is None and value[:1].isdigit():
        wanted = (float,)  # a duration
    elif isinstance(_number(value), float):
        wanted = (float,)
    fitting = [name for kind in wanted for name in _names(conf) if kind in (hints[name], *get_args(hints[name]))]
    declared = [conf.scalar] if hasattr(conf, "scalar") else []
    for name in dict.fromkeys([*declared, *(fitting if "." in shown else [])]):  # not for a whole part of the config
        yield f"{shown}.{name}={value}"


def _similar(value: str) -> Iterator[str]:
    """Yield what was meant by a value that is written in another way, or that has signs which a name can't have."""
    number = _number(value)
    if isinstance(number, float) and number.is_integer():
        yield f"{int(number)}"
    if number is not None and 1 <= number <= 100:
        yield f"{number / 100:g}"
    percent = re.fullmatch(r"([\d.]+) ?%", value)
    if percent and isinstance(_number(percent[1]), int | float):
        yield f"{float(percent[1]) / 100:g}"
    thousands = re.fullmatch(r"([\d.]+)([kKmM])", value)
    if thousands and _number(thousands[1]) is not None:
        yield f"{float(thousands[1]) * _THOUSANDS[thousands[2].lower()]:.0f}"
    if number is None:
        letters = unicodedata.normalize("NFKD", value)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", re.sub(r"[\u0300-\u036f]", "", letters)).strip("._-")
        if plain and plain != value:
            yield plain


def _number(value: str) -> int | float | None:
    for kind in (int, float):
        try:
            found: int | float = kind(value)
        except ValueError:
            continue
        return found if abs(found) < float("inf") else None
    return None


def _names(conf: type) -> list[str]:
    return [one.name for one in fields(conf) if one.init] if is_dataclass(conf) else []


def named_in(message: str, words: Mapping[str, Any]) -> str | None:
    """Return the last of ``words``, by key, whose key a message names; else the last of which it names a part."""
    names = {key: key.rpartition(".")[2] for key in words}
    whole = [key for key, name in names.items() if re.search(rf"\b{re.escape(name)}\b", message)]
    parts = [key for key, name in names.items() if any(len(part) > 3 and part in message for part in name.split("_"))]
    return next(reversed(whole or parts), None)
