"""Take the values of secrets out of texts that others make: what user code prints, and what it raises."""

from __future__ import annotations

import html
import json
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from rtrain.config.secrets.masked import secrets_in_text
from rtrain.config.secrets.names import is_secret
from rtrain.config.secrets.urls import MASK, secrets_in_url

MIN_LENGTH = 6
"""Shorter values are parts of too many other words."""
MIN_ODD_LENGTH = 12
MAX_DEPTH = 8
"""Of data in an exception."""
_ESCAPE = re.compile("%[0-9A-F]{2}")
_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    lambda one: quote(one, safe=""),
    quote,
    quote_plus,
    lambda one: _ESCAPE.sub(lambda found: found[0].lower(), quote(one)),
    lambda one: _ESCAPE.sub(lambda found: found[0].lower(), quote(one, safe="")),
    unquote,
    html.escape,
    lambda one: one.replace("[", "\\["),
    lambda one: json.dumps(one)[1:-1],
    lambda one: json.dumps(one, ensure_ascii=False)[1:-1],
    lambda one: repr(one)[1:-1],
    lambda one: repr(one + "'\"")[1:-4],
    lambda one: ascii(one)[1:-1],
    lambda one: repr(one.encode(errors="surrogateescape"))[2:-1],
)
"""As it is, in addresses, in HTML, in Rich's markup, in JSON; in Python alone, with both quotes, in ASCII, in bytes."""
_VARIABLE = re.compile(r"oc\.env:([^,}]+)")


@dataclass(frozen=True)
class Redactor:
    """Knows the secrets of a config by their values."""

    values: frozenset[str] = field(default=frozenset(), repr=False)

    def __call__(self, text: str) -> str:
        """Return ``text`` with a mask in place of each secret."""
        return self._pattern.sub(MASK, text) if self.values else text

    def clean_data(self, data: Any) -> Any:
        """Return plain data with a mask in place of each secret in its texts, and of what is one."""
        if isinstance(data, dict):
            return {self.clean_data(key): self.clean_data(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.clean_data(value) for value in data]
        if isinstance(data, str):
            return self(data)
        return MASK if data is not None and not isinstance(data, bool) and _text(data) in self.values else data

    @property
    def for_records(self) -> Redactor:
        """What knows only values that look like keys: others, ``accuracy`` say, may stand in a config by themselves."""
        return Redactor(frozenset(filter(_is_odd, self.values)))

    @property
    def for_targets(self) -> Redactor:
        """The redactor that knows the beginnings of values too: errors of a ``_target_`` name its modules."""
        modules = {one.rpartition(".")[0] for one in self.values} | {one.partition(".")[0] for one in self.values}
        return Redactor(self.values | {one for one in modules if len(one) >= MIN_LENGTH})

    @cached_property
    def forms(self) -> list[str]:
        """The secrets as texts may spell them, also twice over, and the lines of each, the longest first."""
        once = {way(value) for value in self.values for way in _SPELLINGS}
        twice = {way(form) for form in once for way in _SPELLINGS}
        return sorted(once.union(twice, *map(_lines, self.values)), key=len, reverse=True)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.forms)))

    def clean(self, error: BaseException) -> BaseException:
        """Take the secrets out of an exception, of those that led to it and of those in it, and return it.

        One that says them all the same, in a field that can't be set say, is exchanged for another of its name.
        """
        if not self.values:
            return error
        found = _related(error)
        for one in found:
            self._clean(one)
        instead = {id(one): self._stand_in(one) for one in found if self._tells(one)}
        for one in [*found, *instead.values()]:
            hidden = one.__suppress_context__
            one.__cause__ = instead.get(id(one.__cause__), one.__cause__)
            one.__context__ = instead.get(id(one.__context__), one.__context__)
            one.__suppress_context__ = hidden
        return instead.get(id(error), error)

    def _clean(self, error: BaseException) -> None:
        error.args = tuple(self._member(one) for one in error.args)
        for name, value in list(vars(error).items()):
            vars(error)[name] = self._member(value)
        if isinstance(error, OSError):
            error.filename, error.filename2 = self._member(error.filename), self._member(error.filename2)
            error.strerror = self._member(error.strerror)
        if isinstance(error, SystemExit):
            error.code = self._member(error.code)

    def _member(self, value: Any, depth: int = 0) -> Any:
        """Return a field of an exception without secrets; what is not plain data stays."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, bytes):
            return self(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        if depth < MAX_DEPTH and type(value) is dict:
            return {self._member(key, depth + 1): self._member(one, depth + 1) for key, one in value.items()}
        if depth < MAX_DEPTH and type(value) in (list, tuple, set, frozenset):
            return type(value)(self._member(one, depth + 1) for one in value)
        return value

    def _tells(self, error: BaseException) -> bool:
        """Tell whether an exception, or one of its group, says a secret."""
        said = [text for one in _members(error) for text in traceback.format_exception_only(one)]
        return any(self(text) != text for text in said)

    def _stand_in(self, error: BaseException) -> Exception:
        kind = type(error)
        text = self("".join(traceback.format_exception_only(error)).strip().partition(": ")[2])
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        other: Exception = type(kind.__name__, (Exception,), names)(text)
        other.__cause__, other.__context__ = error.__cause__, error.__context__
        other.__suppress_context__ = error.__suppress_context__
        return other.with_traceback(error.__traceback__)

    @contextmanager
    def cleaning(self) -> Iterator[None]:
        """Clean the exceptions that leave the block."""
        other = None
        try:
            yield
        except BaseException as error:
            other = self.clean(error)
            if other is error:
                raise
        if other is not None:
            raise other from other.__cause__ or other.__context__  # and not from the one that it stands for


def _related(error: BaseException) -> list[BaseException]:
    """Return an exception, those that led to it, and those of its group."""
    waiting, found = [error], dict[int, BaseException]()
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            waiting += [other for other in (one.__cause__, one.__context__, *inner) if other is not None]
    return list(found.values())


def _members(error: BaseException) -> Iterator[BaseException]:
    yield error
    for one in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _members(one)


def redactor(true: Any, shown: Any, variables: Mapping[str, str]) -> Redactor:
    """Return what knows the secrets of a config.

    Args:
        true: The resolved config.
        shown: The same as it may be shown: masked, with variables of the environment by name.
        variables: What the config sets in the environment.
    """
    odd = {value for name, value in variables.items() if is_secret(name) or _is_odd(value)}
    return Redactor(frozenset(value for value in (*_hidden(true, shown), *odd) if len(value) >= MIN_LENGTH))


def _hidden(true: Any, shown: Any, *, secret: bool = False) -> Iterator[str]:
    """Yield the values that ``true`` has and ``shown`` has not.

    Args:
        true: A part of the resolved config.
        shown: The same as it may be shown.
        secret: Whether it is a secret by its key, or lies in one.
    """
    if isinstance(shown, Mapping) and isinstance(true, Mapping):
        for name, value in true.items():
            yield from _hidden(value, shown.get(str(name)), secret=secret or is_secret(str(name)))
    elif isinstance(shown, list | tuple) and isinstance(true, list | tuple):
        for one, other in zip(true, shown, strict=False):
            yield from _hidden(one, other, secret=secret)
    elif isinstance(shown, str) and shown != true:
        whole = shown == MASK or (secret and shown.endswith(f",{MASK}}}"))  # of a variable that may have a default
        named = [(name, os.environ.get(name, "")) for name in variables_in(shown)]
        told = [value for name, value in named if secret or is_secret(name) or _is_odd(value)]
        yield from told
        decoded = not isinstance(true, str) or shown.startswith("${oc.decode:")
        yield from _leaves(true, secret=whole or (decoded and bool(told)))


def _leaves(true: Any, *, secret: bool) -> Iterator[str]:
    """Yield the secrets in a value; one that was decoded from a text, of a variable say, may have parts."""
    if isinstance(true, Mapping):
        for name, value in true.items():
            yield from _leaves(value, secret=secret or is_secret(str(name)))
    elif isinstance(true, list | tuple):
        for one in true:
            yield from _leaves(one, secret=secret)
    elif secret and true is not None and not isinstance(true, bool):
        yield _text(true)
        yield from secrets_in_text(_text(true))
    elif isinstance(true, str):
        yield from (*secrets_in_url(true), *secrets_in_text(true))


def _text(value: Any) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def _lines(value: str) -> Iterator[str]:
    """Yield the lines of a key of several, which tools indent and quote one by one; of its frame none."""
    lines = map(str.strip, value.splitlines())
    return (line for line in lines if len(line) >= MIN_ODD_LENGTH and not line.startswith("-----"))


def variables_in(text: str) -> list[str]:
    """Return the names of the environment variables that a text refers to."""
    return _VARIABLE.findall(text)


def _is_odd(value: str) -> bool:
    """Tell whether a value looks like a key, and not like a word, a number or a path."""
    mixed = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    return mixed and len(value) >= MIN_ODD_LENGTH and "/" not in value and " " not in value
