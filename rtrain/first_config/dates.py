"""Dates that are written as text."""

from __future__ import annotations

import re
from collections.abc import Collection

from rtrain.datasets.tables.spellings import is_mark

NEARLY_ALL = 0.9
"""Of different texts that may be dates, how many have to be: others are mistakes."""

_YEAR, _MONTH, _DAY = r"(?:1[89]|20)\d\d", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_WORD = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
_WORD += r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_TIME = r"(?:[T ,]+\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[ap]m)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_DAYS = [
    rf"{_YEAR}(?P<a>[-/.]){_MONTH}(?P=a){_DAY}",
    rf"{_DAY}(?P<b>[-/.]){_DAY}(?P=b){_YEAR}",
    rf"(?:{_DAY}/{_MONTH}|{_MONTH}/{_DAY})/\d\d",
    rf"{_DAY}[-/. ]{{1,2}}{_WORD}[-/, ]{{1,2}}(?:{_YEAR}|\d\d)",
    rf"{_WORD}[- ]{_DAY},? {_YEAR}",
]
_MONTHS = [
    r"(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2])",
    r"(?:0[1-9]|1[0-2])/(?:19|20)\d\d",
    rf"{_WORD}[- ]{_YEAR}",
]
_DATE = re.compile(rf"(?:{'|'.join(_DAYS)}){_TIME}|{'|'.join(_MONTHS)}", re.IGNORECASE)


def are_dates(texts: Collection[str]) -> bool:
    """Return whether nearly all of these different texts are dates, marks of missing values aside.

    What may be something else is not counted: ``1.2.21`` is a version, ``2020-21`` a season, ``1/2`` a fraction.
    """
    there = [text.strip() for text in texts if text.strip() and not is_mark(text)]
    found = [match for match in map(_DATE.fullmatch, there) if match]
    return bool(found) and len(found) >= NEARLY_ALL * len(there) and not all(map(_is_season, found))


def _is_season(date: re.Match[str]) -> bool:
    """Return whether what may be a month are two years, one after the other: ``2011-12``."""
    return date["month"] is not None and (int(date["year"]) + 1) % 100 == int(date["month"])
