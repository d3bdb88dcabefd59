"""Texts as a terminal may show them, whoever wrote them."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Return a text with codes in the place of what a terminal obeys, or can't show: ``\\r``, ANSI and OSC, surrogates.

    Args:
        text: May come from files of any origin.
        kept: Characters that stay although they are such.
    """
    return "".join(
        one if one.isprintable() or one in kept else one.encode("unicode_escape").decode("ascii") for one in text
    )
