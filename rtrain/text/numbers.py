"""Numbers as people read them: metrics, during and after a run (``rtrain evaluate`` prints more digits)."""

from __future__ import annotations

DIGITS = 4


def number_text(value: float | None) -> str:
    """Return a number with four significant digits; None stands for one that is not a number."""
    return "nan" if value is None else f"{value:.{DIGITS}g}"
