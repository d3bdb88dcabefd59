"""A TAB without the application: most of them are answered before it could be imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtrain.cli.completing.index import kept
from rtrain.cli.completing.words import candidates
from rtrain.errors import RtrainError
from rtrain.text.printable import printable


def answered(words: Sequence[str]) -> bool:
    """Print what may follow the line in ``words``, if there is an index; tell whether there is."""
    lines = [word for word in words if word != "--"]
    index = kept("index") if len(lines) == 1 else None
    if index is not None:
        answer(lines[0], index)
    return index is not None


def answer(line: str, index: Mapping[str, Any]) -> None:
    """Print what may follow a line, one candidate per line."""
    try:
        found = candidates(line, index)
    except RtrainError:  # there is no place for a message while a line is typed
        return
    for one in found:
        if one == printable(one):  # others could not be typed
            print(printable(one))
