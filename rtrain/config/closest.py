"""The known word that a wrong one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CUTOFF = 0.6
MOST = 12
"""Most words that a hint lists."""


def closest(word: str, known: Iterable[str], cutoff: float = CUTOFF) -> str | None:
    """Return the known word closest to ``word``; one that is a single edit away always counts as close."""
    words = [one for one in dict.fromkeys(known) if one != word]
    near = [one for one in words if one_edit(word, one)]
    if near:
        return max(near, key=lambda one: _same_start(word, one))
    found = get_close_matches(word, words, 1, cutoff)
    return found[0] if found else None


def nearest_or_all(word: str, known: Iterable[str], cutoff: float = CUTOFF) -> str:
    """Return the hint of an error that names the known word closest to ``word``; if none is close, what there is."""
    words = list(dict.fromkeys(known))
    near = closest(word, words, cutoff)
    if near is not None:
        return f"Did you mean '{near}'?"
    return f"There are: {', '.join(words[:MOST])}{', ...' if len(words) > MOST else ''}"


def one_edit(left: str, right: str) -> bool:
    """Return whether one letter added, dropped, changed or swapped with the next one turns ``left`` into ``right``."""
    if abs(len(left) - len(right)) > 1 or len(left) < 2:
        return False
    start = _same_start(left, right)
    rest_left, rest_right = left[start:], right[start:]
    swapped = rest_left[:2] == rest_right[1::-1] and rest_left[2:] == rest_right[2:] and len(rest_left) > 1
    return swapped or rest_left[1:] == rest_right[1:] or rest_left[1:] == rest_right or rest_left == rest_right[1:]


def _same_start(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
