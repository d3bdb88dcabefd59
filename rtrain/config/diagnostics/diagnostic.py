"""One error, and a hint how to fix it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.screen import CliWord, FileLocation, render
from rtrain.config.did_you_mean import did_you_mean, to_try
from rtrain.config.secrets.masked import mask_word
from rtrain.errors import ConfigError


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong, where, what was probably meant, and a command or line that can be pasted."""

    message: str
    place: FileLocation | CliWord | None = None
    meant: str | None = None
    attempt: str | None = None
    note: str | None = None
    others: str | None = None
    """Other mistakes of the same kind."""

    def as_error(self, kind: type[ConfigError] = ConfigError) -> ConfigError:
        """Return the error that shows all of it."""
        hints = [
            f"  {self.note}" if self.note else None,
            f"  {did_you_mean(self.meant)}" if self.meant else None,
            "  " + to_try(self.attempt) if self.attempt else None,
            f"  {self.others}" if self.others else None,
        ]
        return kind(render(self.message, self.place), "\n".join(hint for hint in hints if hint) or None)


def command(request: Request, *more: str) -> str:
    """Return the user's command with ``more`` words, ready to be pasted."""
    return shlex.join([*(mask_word(word) for word in request.command), *more])


def can_sweep(command: Sequence[str]) -> bool:
    """Tell whether a command takes several values of a key: a run that is resumed or predicts takes one of each."""
    return command[1] in ("fit", "check")


def adding_word(place: CliWord) -> str:
    """Return the wrong word as one that adds names to a mapping; + can't set what else a sweep may try, null say."""
    sign = "++" if "--multirun" in place.command else "+"
    return f"{sign}{place.command[place.index].lstrip('+')}"


def command_with(place: CliWord, *new: str, without: str = "") -> str:
    """Return the user's command with ``new`` words in place of the wrong one, or without it, and without another."""
    words = list(place.command)
    words[place.index : place.index + 1] = map(mask_word, new)
    words = [one for one in words if one != without]
    if any(word.startswith("sweep") for word in new) and "--multirun" not in words and can_sweep(words):
        words.append("--multirun")
    return shlex.join(words)
