"""Words of a command line that Hydra can't read: what each of them lacks, and the one that was meant."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Sweep

from rtrain.config.compose.aliases import split_word
from rtrain.config.diagnostics.diagnostic import Diagnostic, command_with
from rtrain.config.diagnostics.meant.keys.wrong_keys import WrongKeys
from rtrain.config.diagnostics.meant.rewritten import number_in, readable
from rtrain.config.diagnostics.meant.unreadable import as_override, closed, readable_words
from rtrain.config.diagnostics.meant.values import Values
from rtrain.config.diagnostics.screen import CliWord
from rtrain.config.diagnostics.source_map import SourceMap
from rtrain.config.files.data_files import words_for
from rtrain.config.files.locations import find_primary
from rtrain.config.secrets.masked import mask_word
from rtrain.errors import ConfigError
from rtrain.runs.filesystem.files import MANIFEST

_SIGNS = re.compile(r"[^\w.@/\-:$]")
_OTHER_DOTS = re.compile(r"[:\[\]]+")
"""What other tools join the names of a key by: ``trainer:max_epochs``, ``trainer[max_epochs]``."""
_QUOTE = "quote text that has special characters; lists are [a,b] and mappings {a: 1}"

_NESTED = re.compile(r"((shuffle|sort|tag)\()?choice\(.*\b(choice|range|interval|glob)\(")
WHOLE = "choice(...), range(...) and interval(...) must be the whole value; list all values instead: KEY=A,B,C"


def varies_within(parser: OverridesParser, word: str) -> bool:
    """Return whether an override contains within a list, a mapping or a choice what can only vary a whole value."""

    def contains(value: Any) -> bool:
        inner = value.list if isinstance(value, ChoiceSweep) else value
        parts = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        return any(isinstance(one, Sweep | Glob) or contains(one) for one in parts)

    return contains(parser.parse_override(word).value())


class UnreadableWords:
    """Explains what Hydra can't parse.

    Args:
        wrong_keys: Knows the keys of the config.
        values: Finds what was meant by wrong values.
        places: Finds the words.
    """

    def __init__(self, wrong_keys: WrongKeys, values: Values, places: SourceMap) -> None:
        self._wrong_keys, self._values, self._places = wrong_keys, values, places

    def explain(self, override: str) -> Diagnostic:
        """Explain an override, spelled out as Hydra gets it."""
        place = self._places.of_word(override)
        if place is None:
            return Diagnostic(f"'{mask_word(override)}' can't be read: an override must be key=value", note=_QUOTE)
        word = place.command[place.index]
        sign, key, value = split_word(word)
        if value is not None and _OTHER_DOTS.search(key):
            dotted = self._values.checked(place, f"{sign}{_OTHER_DOTS.sub('.', key).strip('.')}={value}")
            if dotted is not None:
                return Diagnostic(f"'{key}' can't be read as a key: separate its names with dots", place, None, dotted)
        if (meant := as_override(word)) is not None:
            attempt = self._values.checked(place, meant)
            return Diagnostic(f"'{word}' can't be read: an override must be key=value", place, None, attempt)
        if value is None:
            return self._no_override(place) or self._without_value(place, split_word(override)[1])
        if not key:
            return Diagnostic(f"'{word}' has no key: an override must be key=value", place)
        if _SIGNS.search(key):
            return Diagnostic(
                f"'{key}' can't be read as a key", place, None, None, "a key consists of names separated by dots"
            )
        return self._value(place, sign, key, value)

    def _value(self, place: CliWord, sign: str, key: str, value: str) -> Diagnostic:
        """Explain a value that can't be read, of a key that can."""
        unread = f"the value of '{key}' can't be read"
        if value == ",":
            attempt = self._values.checked(place, f"{sign}{key}=','")
            return Diagnostic(f"{unread}: a comma separates values", place, None, attempt)
        if _NESTED.match(value):
            return Diagnostic(f"{unread}: only a part of it is varied", place, note=WHOLE)
        if value.endswith(","):
            attempt = command_with(place, f"{sign}{key}={value.rstrip(',')}")
            message = f"'{place.command[place.index]}' ends with a comma: a value is missing after it"
            return Diagnostic(message, place, None, attempt)
        if (unclosed := closed(value)) is not None:
            attempt = self._values.checked(place, f"{sign}{key}={unclosed[1]}")
            return Diagnostic(f"{unread}: {unclosed[0]}", place, None, attempt)
        message = f"{unread}: {mask_word(place.command[place.index]).partition('=')[2]}"
        fixed = self._values.checked(place, *(f"{sign}{key}={one}" for one in readable(value)))
        fixed = fixed or self._with_slash(place, key, "null" if sign == "~" else value)
        if fixed is not None:
            return Diagnostic(message, place, None, fixed)
        attempt = self._values.checked(place, *readable_words(sign, key, value))
        return Diagnostic(message, place, None, attempt, _QUOTE)

    def _without_value(self, place: CliWord, key: str) -> Diagnostic:
        word = place.command[place.index]
        apart = self._with_next_words(place, split_word(word)[1].rstrip(":"))
        if apart is not None:
            return Diagnostic(f"'{word}' has no value: an override must be one word, key=value", place, None, apart)
        joined = self._with_word_before(place)
        if joined is not None:
            return Diagnostic(f"'{word}' has no key: a value must be one word", place, None, joined)
        section, _, name = split_word(word)[1].rpartition(".")
        if word.startswith("~") and (unset := self._values.checked(place, f"{section}={{{name}: null}}")) is not None:
            return Diagnostic(f"~ can't remove '{word[1:]}'", place, None, unset)
        usual = self._wrong_keys.usual(key) or "..."
        attempt = command_with(place, f"{word}={usual}")
        return Diagnostic(f"'{word}' has no value: an override must be key=value", place, None, attempt)

    def _with_next_words(self, place: CliWord, key: str) -> str | None:
        """Return the command with the value that stands in the next word: ``lr 0.1``, ``lr = 0.1``; None if none is."""
        request, following = self._wrong_keys.request, place.command[place.index + 1 :]
        count = 2 if following[:1] in (["="], [":"]) else 1
        if len(following) < count or "=" in following[count - 1]:
            return None
        overrides = [*request.overrides[: -len(following)], f"{key}={following[count - 1]}", *following[count:]]
        overrides.pop(len(request.overrides) - len(following) - 1)
        typed = request.command[: len(request.command) - len(request.overrides)]
        passes = self._values.passes(overrides)
        return shlex.join([*typed, *map(mask_word, overrides)]) if passes else None

    def _with_word_before(self, place: CliWord) -> str | None:
        """Return the command with a unit at the number before it, as in ``max_seconds=2 hours``; None if none is."""
        request = self._wrong_keys.request
        at = place.index - (len(request.command) - len(request.overrides))
        before, unit = place.command[place.index - 1], place.command[place.index]
        if at < 1 or number_in(before.rpartition("=")[2]) is None or not unit.isalpha():
            return None
        joined = f"{before}{unit[0]}"
        if not self._values.passes([*request.overrides[: at - 1], joined, *request.overrides[at + 1 :]]):
            return None
        words = [*place.command[: place.index - 1], joined, *place.command[place.index + 1 :]]
        return shlex.join(map(mask_word, words))

    def _no_override(self, place: CliWord) -> Diagnostic | None:
        """Explain a data file, or a second config, where an override is wanted; None if the word is neither."""
        word = place.command[place.index]
        data = words_for(word)
        if data is not None:
            attempt = self._values.checked(place, data[1], data[:2]) or command_with(place, *data)
            return Diagnostic(f"'{word}' is a data file: pass it as a key of the dataset", place, None, attempt)
        try:
            find_primary(word)
        except (ConfigError, OSError):
            return None
        request = self._wrong_keys.request
        others = [mask_word(one) for one in request.overrides if one != word]
        first = request.command[: -len(request.overrides)]
        is_run = bool(request.typed) and (Path(word) / MANIFEST).exists()
        both = [first, [*first[:-1], word] if is_run else ["rtrain", "fit", word]]
        attempt = " && ".join(shlex.join([*one, *others]) for one in both)
        kind = "run" if is_run else "config"
        return Diagnostic(f"'{word}' is a second {kind}: a command takes only one", place, None, attempt)

    def _with_slash(self, place: CliWord, key: str, value: str) -> str | None:
        """Return the command that sets a name with a slash, such as a metric's, inside its section; None if none is."""
        section, _, rest = key.partition("/")
        section, dot, head = section.rpartition(".")
        if not dot or not rest:
            return None
        return self._values.checked(place, f"{section}={{{head}/{rest}: {value}}}")
