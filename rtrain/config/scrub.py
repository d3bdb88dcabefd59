"""Take the values of secrets out of texts that others make: what user code prints, and what it raises."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

from rtrain.config.secrets import MASK, is_secret, secrets_in_url

MIN_LENGTH = 6
"""Shorter values are parts of too many other words."""
MIN_ODD_LENGTH = 12
_VARIABLE = re.compile(r"oc\.env:([^,}]+)")


@dataclass(frozen=True)
class Scrubber:
    """Knows the secrets of a config by their values."""

    values: frozenset[str] = field(default=frozenset(), repr=False)

    def __call__(self, text: str) -> str:
        """Return ``text`` with a mask in place of each secret."""
        return self._pattern.sub(MASK, text) if self.values else text

    def clean_data(self, data: Any) -> Any:
        """Return plain data with a mask in place of each secret in its texts."""
        if isinstance(data, dict):
            return {key: self.clean_data(value) for key, value in data.items()}
        if isinstance(data, list):
            return [self.clean_data(value) for value in data]
        return self(data) if isinstance(data, str) else data

    @cached_property
    def forms(self) -> list[str]:
        """The secrets as texts may spell them: in addresses, in JSON and in Python, the longest first."""
        ways = (
            str,
            lambda one: quote(one, safe=""),
            unquote,
            lambda one: json.dumps(one)[1:-1],
            lambda one: repr(one)[1:-1],
        )
        return sorted({way(value) for value in self.values for way in ways}, key=len, reverse=True)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.forms)))

    def clean(self, error: BaseException) -> None:
        """Take the secrets out of what an exception says, and of those that led to it."""
        if not self.values:
            return
        waiting, seen = [error], set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) not in seen:
                seen.add(id(one))
                self._clean(one)
                waiting += [other for other in (one.__cause__, one.__context__) if other is not None]

    def _clean(self, error: BaseException) -> None:
        error.args = tuple(self(one) if isinstance(one, str) else one for one in error.args)
        for name in ("message", "hint"):  # of rtrain's own errors
            said = getattr(error, name, None)
            if isinstance(said, str):
                setattr(error, name, self(said))

    @contextmanager
    def cleaning(self) -> Iterator[None]:
        """Clean the exceptions that leave the block."""
        try:
            yield
        except BaseException as error:
            self.clean(error)
            raise


def scrubber(true: Any, shown: Any, variables: Mapping[str, str]) -> Scrubber:
    """Return what knows the secrets of a config.

    Args:
        true: The resolved config.
        shown: The same as it may be shown: masked, with variables of the environment by name.
        variables: What the config sets in the environment.
    """
    odd = {value for name, value in variables.items() if is_secret(name) or _is_odd(value)}
    return Scrubber(frozenset(value for value in (*_hidden(true, shown, ""), *odd) if len(value) >= MIN_LENGTH))


def _hidden(true: Any, shown: Any, key: str) -> Iterator[str]:
    """Yield the values that ``true`` has and ``shown`` has not."""
    if isinstance(shown, Mapping) and isinstance(true, Mapping):
        for name, value in true.items():
            yield from _hidden(value, shown.get(str(name)), str(name))
    elif isinstance(shown, list | tuple) and isinstance(true, list | tuple):
        for one, other in zip(true, shown, strict=False):
            yield from _hidden(one, other, key)
    elif isinstance(shown, str) and shown != true:
        yield from _parts(str(true), shown, key)


def _parts(true: str, shown: str, key: str) -> Iterable[str]:
    if shown == MASK:
        return [true]
    named = [(name, os.environ.get(name, "")) for name in variables_in(shown)]
    variables = [value for name, value in named if is_secret(name) or is_secret(key) or _is_odd(value)]
    return [*variables, *secrets_in_url(true)]


def variables_in(text: str) -> list[str]:
    """Return the names of the environment variables that a text refers to."""
    return _VARIABLE.findall(text)


def _is_odd(value: str) -> bool:
    """Tell whether a value looks like a key, and not like a word, a number or a path."""
    mixed = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    return mixed and len(value) >= MIN_ODD_LENGTH and "/" not in value and " " not in value
