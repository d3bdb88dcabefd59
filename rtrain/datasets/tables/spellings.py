"""Texts that stand for the same value: ``True`` and ``true``, ``3.0`` and ``3``, dates, texts with blanks."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import lru_cache

MISSING = ["", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "NaN", "nan", "-NaN", "-nan"]
MISSING += ["1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"]
"""Texts that stand for a missing number, in CSV as in pandas."""

MARKS = frozenset(["NONE", "<NA>", "N.A.", "NOT AVAILABLE", "MISSING", *(text.upper() for text in MISSING if text)])
"""Texts, in capitals, that often stand for a missing value."""

DELIMITERS = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ",", "pipe": "|", "space": " ", "colon": ":"}
"""Characters that have a name."""

BOOLEANS = {"true": "true", "True": "true", "TRUE": "true", "false": "false", "False": "false", "FALSE": "false"}
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?")
TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?)?(?:Z|\+00:00)?")


def is_mark(text: str) -> bool:
    """Return whether a text often stands for a missing value."""
    bare = text.strip()
    return bare.upper() in MARKS or bare in ("?", "-", "--", "---", ".", "*")


def typed_names(texts: Collection[str]) -> set[str] | None:
    """Return what booleans or numbers that are written as these texts are called as categories.

    Returns:
        The names, without those that stand for a missing value; None where a text is neither a boolean nor a number,
        such as ``01234``.
    """
    there = [text for text in texts if text not in MISSING]
    for read in (_boolean, _number):
        names = {read(text) for text in there}
        if None not in names:
            return {name for name in names if name is not None}
    return None


def is_whole(name: str) -> bool:
    """Return whether a name of ``typed_names`` is a whole number or a boolean."""
    return "." not in name


def places_of(texts: Sequence[str], names: Sequence[str], *, zeros_count: bool) -> dict[str, int]:
    """Return the places in ``names`` of texts that are not among them, but stand for the same value as one of them.

    Args:
        texts: What new rows hold.
        names: What training called the categories.
        zeros_count: Whether 01 is another category than 1.
    """
    places = _places_by_value(tuple(names), zeros_count)
    values = {text: _value(text, zeros_count) for text in texts} if places else {}
    found = {text: places.get(value) for text, value in values.items() if value is not None}
    return {text: place for text, place in found.items() if place is not None}


@lru_cache(maxsize=64)
def _places_by_value(names: tuple[str, ...], zeros_count: bool) -> dict[str, int | None]:
    """Return the place of the only name for each value; None where training told two spellings apart."""
    places: dict[str, int | None] = {}
    for place, name in enumerate(names):
        value = _value(name, zeros_count)
        if value is not None:
            places[value] = None if value in places else place
    return places


def _value(text: str, zeros_count: bool) -> str | None:
    return _boolean(text) or _number(text, zeros_count) or _time(text) or text.strip() or None


def _boolean(text: str) -> str | None:
    return BOOLEANS.get(text.strip())


def _number(text: str, zeros_count: bool = True) -> str | None:
    """Return a number without needless zeros; None for other texts, and for 01 where zeros count."""
    text = text.strip()
    if not NUMBER.fullmatch(text) or (zeros_count and re.match("-?0[0-9]", text)):
        return None
    digits = format(Decimal(text), "f")
    short = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if short == "-0" else short


def _time(text: str) -> str | None:
    """Return a time without needless zeros; times of other zones than UTC are texts."""
    match = TIME.fullmatch(text.strip())
    if not match:
        return None
    day, minute, second = match[1], match[2] or "00:00", match[3] or ":00"
    return f"{day} {minute}{second.rstrip('0').rstrip('.') if '.' in second else second}"
