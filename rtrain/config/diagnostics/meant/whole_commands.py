"""Hints that name words of a command line, made whole: ``try: use_gpu=false`` becomes the user's command with it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from rtrain.config.compose.aliases import expand_key, split_word
from rtrain.config.compose.request import Request
from rtrain.config.did_you_mean import did_you_mean, to_try
from rtrain.config.secrets.masked import mask_word

_ATTEMPT = re.compile(rf"^( *){to_try('')}(.+)$", re.MULTILINE)
_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@-]*=.*|~[\w./@-]+")


def with_whole_commands(hint: str, request: Request, check: Callable[[Sequence[str]], Exception | None]) -> str:
    """Return a hint whose attempts are commands that can be pasted; words that don't pass are still named.

    Args:
        hint: What to do about an error.
        request: What was asked for.
        check: Returns what is wrong with the config under other overrides, or None.
    """

    def whole(match: re.Match[str]) -> str:
        words = _overrides(match[2])
        if words is None:
            return match[0]
        new = _replaced(request.overrides, words)
        if not any(word.endswith("=...") for word in words) and check(new) is not None:
            return match[1] + did_you_mean(match[2])
        before = request.command[: len(request.command) - len(request.overrides)]
        return match[1] + to_try(shlex.join([*before, *map(mask_word, new)]))

    return _ATTEMPT.sub(whole, hint)


def _overrides(text: str) -> list[str] | None:
    """Return the words of an attempt that is nothing but overrides; else None."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return words if all(map(_OVERRIDE.fullmatch, words)) else None


def _replaced(overrides: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the overrides with ``words`` in the places of those that set the same keys, and at the end."""
    new = list(overrides)
    for word in words:
        same = [index for index, one in enumerate(new) if _key(one) == _key(word)]
        for index in same[:-1][::-1]:
            del new[index]
        position = same[-1] - len(same) + 1 if same else len(new)
        new[position : position + bool(same)] = [word]
    return new


def _key(word: str) -> str:
    return expand_key(split_word(word)[1]).replace("/", ".")
