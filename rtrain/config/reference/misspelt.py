"""Which words are nearly one of some words: for places where any word may stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

LEAST = 4
"""Shortest word whose misspellings are refused: those of shorter ones are words themselves."""


def misspelt(words: Iterable[str]) -> str:
    """Return the pattern, without anchors, of what is one edit away from some words, and none of them.

    A slash may come first, and an ``@`` ends a word, as in Hydra's names of config groups.
    """
    known = sorted(words)
    near = sorted({one for word in known if len(word) >= LEAST for one in _edits(word)})
    return f"(?!/?({'|'.join(map(re.escape, known))})(@|$))/?({'|'.join(near)})(@|$)"


def _edits(word: str) -> Iterator[str]:
    """Yield patterns: a letter is missing, another one or doubled, or two neighbours have changed places."""
    for i in range(len(word)):
        yield f"{re.escape(word[:i])}[^@]{{0,2}}{re.escape(word[i + 1 :])}"
        if i + 1 < len(word):
            yield re.escape(word[:i] + word[i + 1] + word[i] + word[i + 2 :])
