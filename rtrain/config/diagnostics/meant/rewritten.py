"""Other ways to write a value: what may have been meant by one that can't be."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

OFF = ("null", "none", "off", "no", "false", "never", "disable", "disabled", "unlimited", "forever", "inf", "all")
"""Values that switch something off, or that know no limit."""
_NOTHING = ("null", "false", "none", "[]")
"""How a config says so, by the type of the key."""
_THOUSANDS = {"k": 10**3, "m": 10**6, "b": 10**9}
LEAST_PERCENT = 5
"""The least whole number that may be meant in percent: 2 for a momentum is not 0.02."""
_DECIMAL = r"-?\d*\.?\d+"
_COUNTED = (
    "rows?|samples?|examples?|lines?|records?|epochs?|steps?|rounds?|trees?|workers?|processes|cpus?|cores?|gpus?"
)
_SIGNS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"')
    | dict.fromkeys("\u2018\u2019\u201a", "'")
)


def rewritten(value: str) -> Iterator[str]:
    """Yield what was meant by a value, as a command line has it: the likeliest first.

    Args:
        value: As typed, after the ``=``.
    """
    if quoted := re.fullmatch(r"(['\"])(.*)\1", value):
        yield from (one for one in (quoted[2], *rewritten(quoted[2])) if one)
        return
    seen = {value}
    found = (*_numbers(value), *_nothing(value), *_names(value), *_lists(value), *_switches(value), *_whole(value))
    for one in (plainly(value), *found):
        if one is not None and one not in seen:
            seen.add(one)
            yield one


def _whole(value: str) -> Iterator[str]:
    """Yield the whole numbers of an interval between two of them."""
    if re.fullmatch(r"interval\(-?\d+, ?-?\d+\)|tag\(log, ?interval\(\d+, ?\d+\)\)", value):
        yield f"int({value})"


def with_unit(value: str) -> Iterator[str]:
    """Yield what was meant by a value of a key that has a unit."""
    yield from (
        one for one in (plainly(value), value.lower(), *_nothing(value), *_lists(value)) if one not in (None, value)
    )


def plainly(value: str) -> str | None:
    """Return a value with plain digits, quotes and minus signs; None if it has no others."""
    plain = unicodedata.normalize("NFKC", value).translate(_SIGNS)
    if plain == value or not plain.isascii():
        return None
    quoted = re.fullmatch(r"(['\"])([\w.+-]+)\1", plain)
    return quoted[2] if quoted else plain


def readable(value: str) -> Iterator[str]:
    """Yield what was meant by a value that can't be read at all."""
    yield from (one for one in (plainly(value), _in_brackets(value)) if one is not None)


def with_point(value: str) -> list[str]:
    """Return the numbers that two values joined by a comma may be: ``0,01`` is 0.01, ``1,024`` also 1024."""
    match = re.fullmatch(r"(-?\d+),(\d+)", value)
    if match is None:
        return []
    return [f"{match[1]}.{match[2]}", *([match[1] + match[2]] if len(match[2]) == 3 and match[1] != "0" else [])]


def shares_in(value: str) -> list[str]:
    """Return shares that are written together, such as ``[0.8,0.2]``, ``80/20`` or ``80/10/10``; none if not."""
    parts = re.fullmatch(rf"\[?({_DECIMAL}(?:[,/:] ?{_DECIMAL}){{1,2}})\]?", value)
    numbers = [float(one) for one in re.split(r"[,/:] ?", parts[1])] if parts else []
    whole = sum(numbers)
    is_whole = any(abs(whole - one) < 1e-9 for one in (1, 10, 100)) and min(numbers) >= 0
    return [f"{round(one / whole, 6):g}" for one in numbers] if is_whole else []


def number_in(value: str) -> int | float | None:
    """Return the number that a text is; None if it is none, or has no end."""
    for kind in (int, float):
        try:
            found: int | float = kind(value)
        except ValueError:
            continue
        return found if abs(found) < float("inf") else None
    return None


def _numbers(value: str) -> Iterator[str]:
    number = number_in(value)
    if isinstance(number, float) and number.is_integer():
        yield f"{int(number)}"
    elif isinstance(number, float) and number > 1:
        yield f"{round(number)}"
    if isinstance(number, int) and LEAST_PERCENT <= number <= 100:
        yield f"{number / 100:g}"
    if match := re.fullmatch(rf"({_DECIMAL}) ({_COUNTED})", value):
        yield match[1]
    if match := re.fullmatch(r"(\d{1,3}) ?(?:\*\*|\^) ?(\d{1,2})", value):
        yield f"{int(match[1]) ** int(match[2])}"
    if match := re.fullmatch(r"(\d{1,6}) ?[*x] ?(\d{1,6})", value):
        yield f"{int(match[1]) * int(match[2])}"
    if match := re.fullmatch(r"\d{1,3}(?:[' ]\d{3})+", value):
        yield re.sub(r"\D", "", value)
    if match := re.fullmatch(rf"({_DECIMAL}) ?%", value):
        yield f"{float(match[1]) / 100:g}"
    if match := re.fullmatch(rf"({_DECIMAL}) ?([kKmMB])", value):
        yield f"{float(match[1]) * _THOUSANDS[match[2].lower()]:.0f}"
    if match := re.fullmatch(rf"({_DECIMAL}) ?([kKMGT])(i?)B", value):
        yield f"{float(match[1]) * (1024 if match[3] else 1000) ** ('kMGT'.index(match[2].replace('K', 'k')) + 1):.0f}"
    if (match := re.fullmatch(rf"({_DECIMAL}) ?/ ?({_DECIMAL})", value)) and float(match[2]):
        yield f"{float(match[1]) / float(match[2]):g}"


def _nothing(value: str) -> Iterator[str]:
    if value.casefold() in OFF:
        yield from _NOTHING


def _lists(value: str) -> Iterator[str]:
    if match := re.fullmatch(r"\{([^:{}\[\]]+)\}", value):  # as sets of Python
        yield f"[{match[1]}]"
    if match := re.fullmatch(r"\[([^,\[\]]+)\]", value):
        yield match[1]
    if (match := re.fullmatch(rf"\[({_DECIMAL}), ?({_DECIMAL})\]", value)) and float(match[1]) > float(match[2]):
        yield f"[{match[2]},{match[1]}]"
    if (bracketed := _in_brackets(value)) is not None:
        yield bracketed
    if match := re.fullmatch(rf"\[?({_DECIMAL}(?:[ ;]+{_DECIMAL})+)\]?", value):
        yield f"[{','.join(re.split('[ ;]+', match[1]))}]"
    if match := re.fullmatch(r"(\d+) ?(?:-|\.\.+|:|to) ?(\d+)", value):
        yield f"[{match[1]},{match[2]}]"
    if re.fullmatch(r"\d+( ?[x*] ?\d+)+", value):
        yield f"[{','.join(re.findall(r'[0-9]+', value))}]"
    if value and value[0] not in "[('\"" and not (number_in(value) or 0) < 0:
        yield f"[{value}]"
    if (number_in(value) or -1) > 0:
        yield f"[{value},{value}]"


def _switches(value: str) -> Iterator[str]:
    if re.fullmatch(r"(cuda|gpu)(:\d+)?|auto|enabled?|y|t", value.casefold()):
        yield "true"
    if value.casefold() in ("cpu", "mps", "n", "f"):
        yield "false"


def _in_brackets(value: str) -> str | None:
    match = re.fullmatch(r"\(([^()]*)\)", value)
    return f"[{match[1].rstrip(', ')}]" if match else None


def _names(value: str) -> Iterator[str]:
    if "%" not in value:
        yield from as_name(value)


def as_name(value: str) -> Iterator[str]:
    """Yield the name that a text may become, without what names lack."""
    if number_in(value) is None and value[:1] not in ("[", "{", "$") and "://" not in value:
        letters = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", value))
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", letters).strip("._-")
        if plain and plain != value:
            yield plain
