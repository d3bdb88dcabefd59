"""A TAB without the application: most of them are answered before it could be imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.cli.completing.index import kept
from rtrain.cli.completing.words import candidates, unquoted
from rtrain.errors import RtrainError
from rtrain.text.printable import printable


def answered(words: Sequence[str]) -> bool:
    """Print what may follow the line in ``words``, if there is an index; tell whether there is."""
    lines = [word for word in words if word != "--"]
    index = kept("index") if len(lines) in (1, 2) else None
    if index is not None:
        answer(lines[0], index, *lines[1:])
    return index is not None


def answer(line: str, index: Mapping[str, Any], replaced: str | None = None) -> None:
    """Print what may follow a line, one candidate per line.

    Args:
        line: The command line up to the cursor.
        index: All commands and keys.
        replaced: The end of ``line`` that the shell replaces, as it is typed; the word at the cursor by default.
    """
    try:
        found = candidates(line, index)
    except RtrainError:  # there is no place for a message while a line is typed
        return
    stays = "" if replaced is None else unquoted(line.removesuffix(replaced))[-1]
    for one in found:
        if one == printable(one):  # others could not be typed
            print(printable(one[len(stays) :]))
