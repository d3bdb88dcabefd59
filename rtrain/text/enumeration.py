"""Enumerations that stay short, however many things there are."""

from __future__ import annotations

from collections.abc import Sequence


def few(texts: Sequence[str], most: int) -> str:
    """Return at most so many texts in one line, and how many more there are: ``a, b, c and 4 more``."""
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")
