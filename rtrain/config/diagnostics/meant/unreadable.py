"""A word that is not an override: what stands between its key and its value, and the bracket or quote that it lacks."""

from __future__ import annotations

import re

_KEY = r"[+~]{0,2}[A-Za-z_][\w.@/-]*"
_SEPARATED = re.compile(rf"({_KEY})\s*(?:==+|:=|=:|=|:|\s)\s*([^\s=:].*)", re.DOTALL)
_PAIR = re.compile(r"([\w./]+)\s*=\s*([^,=\[\](){}]+)")
_PAIRS = re.compile(rf"(?:dict)?[\[({{]?\s*({_PAIR.pattern}(?:\s*,\s*{_PAIR.pattern})*)\s*[\])}}]?")
_TOOL = r"(?:[A-Za-z]\w*\.)?"
"""What stands before a function of another tool: ``tune.``, ``hp.``."""
_CLOSING = {"[": "]", "{": "}", "(": ")"}


def as_override(word: str) -> str | None:
    """Return ``key=value`` for a word that writes it differently: ``lr:0.1``, ``lr 0.1``, ``lr==0.1``, ``lr = 0.1``.

    None if the two parts can't be separated, or if it is ``key=value``.
    """
    match = _SEPARATED.fullmatch(word.strip())
    if match is None:
        return None
    found = f"{match[1]}={match[2]}"
    return None if found == word else found


def readable_words(sign: str, key: str, value: str) -> list[str]:
    """Return words that may say what Hydra can't read in ``value``: as a mapping, then as a quoted text."""
    inside = _PAIRS.fullmatch(value)
    pairs = [f"{name}: {one}" for name, one in _PAIR.findall(inside[1])] if inside is not None else []
    quoted = value.replace('"', '\\"')
    if (drawn := _drawn(value)) is not None:
        return [f"{sign}{key}={drawn}"]
    return [*([f"{sign}{key}={{{', '.join(pairs)}}}"] if pairs else []), f'{sign}{key}="{quoted}"']


def _drawn(value: str) -> str | None:
    """Return what a sweep tries where a function of another tool draws it: ``tune.choice([1, 2])``; None for others.

    Hydra's own ``choice(...)`` takes no null, which a list may hold.
    """
    if interval := re.fullmatch(rf"{_TOOL}(log)?uniform\(([^(),]+), ?([^(),]+)\)", value):
        between = f"interval({interval[2]},{interval[3]})"
        return f"tag(log,{between})" if interval[1] else between
    if listed := re.fullmatch(rf"{_TOOL}(?:choice|grid_search|categorical)\(\[([^\[\]()]+)\]\)", value):
        return re.sub(r",\s+", ",", listed[1])
    if (own := re.fullmatch(r"choice\(([^()]*)\)", value)) and re.search(r"(^|,)\s*null\s*(,|$)", own[1]):
        return re.sub(r",\s+", ",", own[1])
    return None


def closed(value: str) -> tuple[str, str] | None:
    """Return which sign a value lacks, or has too many, in words, and the value as it should be; None if none does."""
    if value[:1] not in _CLOSING and value[:1] not in ("'", '"'):
        return None  # a text, which wants quotes
    out, open_ones, problem = "", [], None
    quote: str | None = None
    for sign in value:
        if quote is not None or sign in "'\"":
            quote = (None if sign == quote else quote) if quote is not None else sign
        elif sign in _CLOSING:
            open_ones.append(_CLOSING[sign])
        elif sign in _CLOSING.values():
            while open_ones and open_ones[-1] != sign and sign in open_ones:
                problem = problem or f"a {open_ones[-1]} is missing"
                out += open_ones.pop()
            if not open_ones or open_ones[-1] != sign:
                problem = problem or f"there is a {sign} too many"
                continue
            open_ones.pop()
        out += sign
    if quote is not None:
        return f"a closing {quote} is missing", f"{value}{quote}"
    if open_ones:
        problem = problem or f"a {open_ones[-1]} is missing"
        out += "".join(reversed(open_ones))
    return None if problem is None else (problem, out)
