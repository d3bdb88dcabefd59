"""How a call from Python looks in an error: its arguments, one of them marked, and the call that would do."""

from __future__ import annotations

import json
import keyword
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep
from hydra.errors import HydraException

from rtrain.config.calls.overrides import Given, is_free, value_of
from rtrain.config.files.locations import Primary
from rtrain.text.wrapping import room

_OF_MODELS = ("overrides", "checkpoint", "split", "trust")
OPTIONS: dict[str, tuple[str, ...]] = {
    "fit": ("config", "overrides", "config_dir", "quiet"),
    "sweep": ("config", "overrides", "config_dir", "quiet"),
    "resume": ("run", "overrides", "trust", "quiet"),
    "evaluate": ("place", *_OF_MODELS),
    "predict": ("place", "output", *_OF_MODELS, "force"),
    "load_checkpoint": ("place", "overrides", "checkpoint", "trust"),
}
"""Keywords of each function that are parameters, not keys of the config."""
MAX_WIDTH = 108
GIVEN = "{...}"
"""How a config that is a mapping is shown."""
_COMMAND = re.compile(r"(?:(?<=: |  )|^ *)rtrain (fit|resume|evaluate) (\S.*)$", re.MULTILINE)
_FLAGS = ((r"--(force|trust)\b", r"\1=True"), (r"--(split|checkpoint) (\w+)", r'\1="\2"'))
_WORD = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@-]*=.*|~[\w./@-]+", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A call of one of rtrain's functions, whose errors speak of it and not of a command.

    Args:
        function: ``fit``, ``sweep``, ``resume`` or ``evaluate``.
        place: Its first argument, as a command would have it.
        overrides: The others.
        given: The config that was written of a mapping, if that is the first argument.
    """

    function: str
    place: str
    overrides: tuple[Given, ...] = ()
    given: Primary | None = None

    @property
    def source(self) -> str | Primary:
        """The config."""
        return self.place if self.given is None else self.given

    @property
    def words(self) -> list[str]:
        """The overrides as Hydra's grammar has them."""
        return [one.word for one in self.overrides]

    def render(self, words: Sequence[str], marked: int) -> list[str]:
        """Return the call as a line, and one with carets under an argument; others give way if it is too long.

        Args:
            words: Its overrides, secrets masked.
            marked: The number of the override that is wrong; -1: the config is.
        """
        head, pieces = self._head(), self._pieces(words)
        marked = self._order(words).index(marked) if marked >= 0 else marked
        if len(_joined(head, pieces)) > room(MAX_WIDTH, 4) and marked >= 0:
            more = [("", "...", "")] if marked + 1 < len(pieces) else []
            head, pieces, marked = f"rtrain.{self.function}(...", [("", pieces[marked][1], ""), *more], 0
        if marked < 0:
            place = self._shown_place(self.place)
            start, width = len(head) - len(place), len(place)
        else:
            opening, piece, _ = pieces[marked]
            start, width = len(_joined(head, pieces[:marked])) + len(", ") - 1 + len(opening), len(piece)
        return [f"    {_joined(head, pieces)}", f"    {' ' * start}{'^' * width}"]

    def text(self, words: Sequence[str], *, function: str | None = None, place: str | None = None) -> str:
        """Return the call with other overrides, of another function or with another first argument."""
        return _joined(self._head(function, place), self._pieces(words))

    def _head(self, function: str | None = None, place: str | None = None) -> str:
        return f"rtrain.{function or self.function}({self._shown_place(self.place if place is None else place)}"

    def _shown_place(self, place: str) -> str:
        return GIVEN if self.given is not None and place == self.place else _literal(place)

    def _pieces(self, words: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return each override as an argument, or as a part of one, between what opens and what closes that."""
        forms = self._forms(words)
        num_positional = len(forms) - forms.count("keyword")
        brackets = "{}" if "entry" in forms else "[]" if num_positional > 1 else ("", "")
        return [
            (
                brackets[0] if place == 0 and num_positional else "",
                _piece(words[index], forms[index]),
                brackets[1] if place == num_positional - 1 else "",
            )
            for place, index in enumerate(self._order(words))
        ]

    def _order(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of the overrides in the order of the arguments: keywords come last."""
        forms = self._forms(words)
        return sorted(range(len(words)), key=lambda index: forms[index] == "keyword")

    def _forms(self, words: Sequence[str]) -> list[str]:
        """Return the form of each override: that in which it was given, or that of the others."""
        given = {one.word: one.form for one in self.overrides}
        of_keys = {_key(one.word): one.form for one in self.overrides}
        has_keywords, has_texts = "keyword" in of_keys.values(), "text" in of_keys.values()
        forms = []
        for word in words:
            name, is_value = _key(word), _as_value(word) is not None
            form = given.get(word) or of_keys.get(name) or ("text" if has_texts and not has_keywords else "keyword")
            if form == "keyword" and not self._is_keyword(name):
                form = "text" if has_texts else "entry"
            forms.append(form if is_value else "text")
        if "text" in forms:  # texts and a mapping can't both be given
            forms = ["text" if form == "entry" else form for form in forms]
        return forms

    def _is_keyword(self, name: str) -> bool:
        return name.isidentifier() and not keyword.iskeyword(name) and name not in OPTIONS[self.function]


def in_python(text: str | None, call: Call) -> str | None:
    """Return a hint with calls in place of the commands that it names; those that only a shell has stay."""

    def replaced(match: re.Match[str]) -> str:
        try:
            place, *words = shlex.split(match[2])
        except ValueError:
            return match[0]
        if (match[1], call.function) == ("resume", "sweep"):  # Python resumes a sweep by the same call
            return match[0]
        function, others = match[1], [word for word in words if word not in ("--multirun", "-m")]
        if place.startswith("-") or not all(map(_WORD.fullmatch, others)):
            return match[0]
        function = "sweep" if len(others) < len(words) else function
        indent = match[0][: len(match[0]) - len(match[0].lstrip(" "))]
        return indent + call.text(others, function=function, place=place)

    if text is None:
        return None
    text = _COMMAND.sub(replaced, text)
    for flag, option in _FLAGS:
        text = re.sub(flag, option, text)
    return text


def _joined(head: str, pieces: Sequence[tuple[str, str, str]]) -> str:
    return f"{', '.join([head, *(''.join(one) for one in pieces)])})"


def _key(word: str) -> str:
    """Return the key of an override as it was given: with its sign, unless every call gives it that."""
    key = word.partition("=")[0]
    bare = key.removeprefix("++")
    return bare if is_free(bare) else key


def _piece(word: str, form: str) -> str:
    if form == "text":
        return _literal(word)
    key = _key(word)
    return f"{_literal(key)}: {_as_value(word)}" if form == "entry" else f"{key}={_as_value(word)}"


def _as_value(word: str) -> str | None:
    """Return the value of an override as Python has it; None if only Hydra's grammar has a form for it."""
    _, equals, text = word.partition("=")
    if not equals or word.startswith("~"):
        return None
    if text == "...":
        return "..."
    try:
        override = OverridesParser.create().parse_override(word)
        value = override.value()
    except HydraException:
        return None
    if isinstance(value, ChoiceSweep) and not value.tags and not value.shuffle:
        values = (value_of(f"key={one}") for one in override.sweep_string_iterator())
        return f"rtrain.choice({', '.join(map(_literal, values))})"
    is_plain = value is None or isinstance(value, str | bool | int | float | list | dict)
    return _literal(value) if is_plain else None


def _literal(value: object) -> str:
    """Return a value as Python's source has it, texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)
