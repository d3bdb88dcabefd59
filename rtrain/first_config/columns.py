"""What the columns of a table hold, and what each can be in a config: a feature, the name of a row, or nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.categories import (
    MANY_ROWS,
    is_declared,
    is_nested,
    is_number,
    is_text,
    mostly_numbers,
    numbers_but_for,
)
from rtrain.datasets.tables.column_types import is_numeric
from rtrain.datasets.tables.spellings import is_mark
from rtrain.errors import DatasetError
from rtrain.first_config.dates import are_dates
from rtrain.text.printable import printable

FEATURE, NAME, LEFT_OUT = "feature", "names rows", "left out"
_ID = re.compile(r"(.*[_ ])?([iI][dD]|index|number|[nN][or])|.*I[dD]")
"""Names of columns whose whole numbers name rows, if all differ."""
_QUERY = re.compile(r"q(uery)?[_ ]?id|query", re.IGNORECASE)
"""Names of columns whose equal values usually make a query of a ranking."""
_SENTINEL = re.compile("-?99+")
"""Numbers that stand for a missing value in old files."""
MOST_SHOWN = 4
"""Most values of a column that its description lists."""
LONGEST = 24
"""Most characters of a value that are shown."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        name: As in the file.
        holds: What is in it, in a few words.
        num_missing: How many rows have no value.
        use: ``FEATURE``, ``NAME`` or ``LEFT_OUT``.
        note: Why it is left out, or what to look at; maybe nothing.
        is_time: Whether it holds dates or times.
        is_whole: Whether it holds whole numbers.
    """

    name: str
    holds: str
    num_missing: int
    use: str
    note: str = ""
    is_time: bool = False
    is_whole: bool = False


def columns_of(table: pa.Table, label: str) -> list[Column]:
    """Return what is in each column of a table, of which one is to be predicted.

    Whole numbers that all differ are features where nothing else is: the year of a series of temperatures.

    Raises:
        DatasetError: No column can be a feature.
    """
    found = [_in_table(name, table[name]) for name in table.column_names]
    if not _has_features(found, label):
        found = [replace(one, use=FEATURE, note="") if one.is_whole and one.use == NAME else one for one in found]
    if not _has_features(found, label):
        others = [f"{one.name} ({one.note})" for one in found if one.name != label]
        what = (
            f"no other column can be a feature: {', '.join(others[:MOST_SHOWN])}" if others else "it is the only column"
        )
        raise DatasetError(f"there is nothing to predict {label} by: {what}.", "Name a table with more columns.")
    return found


def _has_features(columns: Iterable[Column], label: str) -> bool:
    return any(one.use == FEATURE for one in columns if one.name != label)


def _in_table(name: str, values: pa.ChunkedArray) -> Column:
    found = _column(name, values)
    is_query = found.use == FEATURE and not found.note and _QUERY.fullmatch(name) is not None
    return replace(found, note=f"to learn a ranking: task: ranking, group: {name}") if is_query else found


def _column(name: str, values: pa.ChunkedArray) -> Column:
    values = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values  # Arrow can't compare halves
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if is_nested(kind) or not (is_numeric(kind) or is_text(kind) or pa.types.is_temporal(kind)):
        return Column(name, str(kind), values.null_count, LEFT_OUT, "neither numbers nor text")
    present = values.filter(pc.invert(pc.is_null(values, nan_is_null=True)))
    missing = len(values) - len(present)
    if not len(present):
        return Column(name, "nothing", missing, LEFT_OUT, "no row has a value")
    different = pc.unique(present)
    if len(different) == 1 and not missing:
        holds = _times(different) if pa.types.is_temporal(kind) else f"always {_shown(different[0])}"
        return Column(name, holds, missing, LEFT_OUT, "the same in all rows")
    if pa.types.is_temporal(kind):
        is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        return Column(name, _times(present), missing, LEFT_OUT, "times are not numbers", is_time=is_time)
    if is_declared(values.type):
        return _categories(name, different, missing, len(values))
    if is_text(kind):
        return _texts(name, different, missing, len(values))
    return _numbers(name, present, len(different), missing)


def _times(present: pa.ChunkedArray) -> str:
    """Return what a column of times holds; of durations, and years that Python has no dates for, the type alone."""
    try:
        return f"times, {_shown(pc.min(present))} to {_shown(pc.max(present))}"
    except (pa.ArrowNotImplementedError, OverflowError, ValueError):
        return str(present.type)


def _texts(name: str, different: pa.Array, missing: int, num_rows: int) -> Column:
    """Return what a column of text holds: categories, unless it seems to hold numbers or dates."""
    texts = different.to_pylist()
    found = _categories(name, different, missing, num_rows)
    if are_dates(texts):
        return replace(found, use=LEFT_OUT, note="dates written as text")
    if found.use != NAME and mostly_numbers(texts):
        wrong = next((one for one in sorted(texts) if not is_number(one)), None)
        why = "numbers written as text" if wrong is None else f"numbers, but '{_shown(wrong)}' is not"
        return replace(found, use=LEFT_OUT, note=why)
    if signs := numbers_but_for(texts):
        use = FEATURE if found.use == FEATURE else LEFT_OUT
        return replace(found, use=use, note=f"would be numbers without {signs}")
    return found


def _categories(name: str, different: pa.Array, missing: int, num_rows: int) -> Column:
    """Return what a column holds whose different values are the names of categories, if there are few of them."""
    texts = sorted(map(str, different.to_pylist()))
    shown = ", ".join(map(_shown, texts[:MOST_SHOWN])) + (", ..." if len(texts) > MOST_SHOWN else "")
    holds = f"only {shown}" if len(texts) == 1 else f"{len(texts)} texts: {shown}"
    if 2 * len(texts) > num_rows >= MANY_ROWS:
        all_differ = len(texts) == num_rows - missing
        use, note = (NAME, "all values differ") if all_differ else (LEFT_OUT, "almost all differ")
        return Column(name, holds, missing, use, note)
    marks = [json.dumps(text, ensure_ascii=False) for text in texts if is_mark(text)]
    note = f"to take it as missing: na_values: [{', '.join(marks)}]" if marks else ""
    return Column(name, holds, missing, FEATURE, note)


def _numbers(name: str, present: pa.ChunkedArray, num_different: int, missing: int) -> Column:
    if pa.types.is_boolean(present.type):
        holds = "true and false" if num_different == 2 else f"only {str(present[0]).lower()}"
        return Column(name, holds, missing, FEATURE)
    low, high = pc.min(present).as_py(), pc.max(present).as_py()
    if low == high and not math.isinf(low):
        return Column(name, f"only {_shown(low)}", missing, FEATURE, is_whole=pa.types.is_integer(present.type))
    between = f"{_shown(low)} to {_shown(high)}"
    if math.isinf(low) or math.isinf(high):
        return Column(name, f"numbers, {between}", missing, LEFT_OUT, "some are infinite")
    if not pa.types.is_integer(present.type):
        return Column(name, f"numbers, {between}", missing, FEATURE, _sentinel(present))
    holds = f"whole numbers, {between}"
    all_differ = num_different == len(present)
    if all_differ and len(present) >= MANY_ROWS and (high - low + 1 == len(present) or _ID.fullmatch(name)):
        return Column(name, holds, missing, NAME, "all values differ", is_whole=True)
    return Column(name, holds, missing, FEATURE, _sentinel(present), is_whole=True)


def _sentinel(present: pa.ChunkedArray) -> str:
    """Return a note on a number such as -999 that is far from all others: it may say that a value is missing."""
    for end in (pc.min, pc.max):
        value = end(present).as_py()
        if not _SENTINEL.fullmatch(f"{value:.17g}"):
            continue
        others = present.filter(pc.not_equal(present, value))
        low, high = pc.min(others).as_py(), pc.max(others).as_py()
        gap = min(abs(value - low), abs(value - high))
        if len(present) - len(others) > 1 and gap > high - low:
            return f"to take {value:g} as missing: na_values: [{value:g}]"
    return ""


def _shown(value: Any) -> str:
    """Return a value as a comment has it: on one line, and short."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    text = printable(f"{plain:g}" if isinstance(plain, float) else str(plain), "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
