"""Features that are categories: their names, and the codes that stand for them in ``x``."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.base import Columns
from rtrain.datasets.conf import ColumnsConf
from rtrain.datasets.tables.spellings import MISSING, is_mark, is_whole, places_of, typed_names
from rtrain.errors import DatasetError

log = logging.getLogger(__name__)

MAX_CATEGORIES = 100_000
MAX_WHOLE = 2.0**63
"""Floats below it are int64 if they are whole."""
MANY_ROWS = 100
"""Minimum number of rows before a category with nearly as many names is reported."""
NUMBERS_SHARE = 0.9
"""Of the different values of a column of text, how many make it a column of numbers that can't be read."""

_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})*\s*")
_POINTS = re.compile(r"\s*[+-]?(0|[1-9]\d{0,2}(\.\d{3})*)(,\d+)?\s*")
"""Numbers with points between thousands, as in ``1.024,50``."""
_MONEY = re.compile(r"[\s,$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN)\b")
"""What amounts of money are written with: currencies, and signs between thousands."""
SIGNS = (",", "%", "$", " ")
"""Signs that people write numbers with and that readers don't accept."""


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text, also by reference to a dictionary."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_fraction(kind: pa.DataType) -> bool:
    """Return whether values of this type have a fractional part."""
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_declared(kind: pa.DataType) -> bool:
    """Return whether a column of this type is a category by itself: a dictionary of texts or whole numbers."""
    return bool(pa.types.is_dictionary(kind)) and not is_fraction(kind.value_type) and not is_nested(kind)


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a column holds bytes."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    checks = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(check(kind) for check in checks)


def is_nested(kind: pa.DataType) -> bool:
    """Return whether the values of a column are lists or have fields, those of dictionaries and extensions included."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_nested(getattr(kind, "storage_type", kind)))


class CategoryScan:
    """Looks at the rows of ``train`` to find out which features are categories, and what they are called.

    Those asked for are; else columns of dictionaries, and those of text unless nearly all that they hold are numbers:
    that is a column of numbers, with a mistake in it maybe. ``untyped`` ones were read as text because their files have
    no types: where all that they hold are booleans or whole numbers, they are called as in files that have some.
    """

    def __init__(self, features: Sequence[str], asked: Sequence[str] | None, untyped: Collection[str] = ()) -> None:
        self._features, self._asked, self._untyped = features, asked, untyped
        self._texts: set[str] = set()
        self._names: dict[str, set[str]] = {name: set() for name in asked or ()}
        self._sure = set(asked or ())
        self._numbers: set[str] = set()

    def candidates(self, schema: pa.Schema) -> list[str]:
        """Return the features that may be categories: those asked for, else those of text and dictionaries."""
        if self._asked is not None:
            return list(self._asked)
        kinds = {name: schema.field(name).type for name in set(self._features) & set(schema.names)}
        self._sure |= {name for name, kind in kinds.items() if is_declared(kind)}
        return [name for name in self._features if name in kinds and (is_text(kinds[name]) or name in self._sure)]

    def add(self, table: pa.Table, where: str) -> None:
        """Take in some rows.

        Raises:
            DatasetError: A column has too many different values, or fractions.
        """
        for name in self.candidates(table.schema):
            if name in self._numbers:
                continue
            values = names_of(table[name], f"{where}: feature '{name}'")
            self._texts |= {name} if is_text(table[name].type) else set()
            known = self._names.setdefault(name, set())
            known.update(value for value in pc.unique(values).to_pylist() if value is not None)
            if len(known) > MAX_CATEGORIES and self._holds_numbers(name):
                self._numbers.add(name)
            elif len(known) > MAX_CATEGORIES:
                raise DatasetError(
                    f"{where}: feature '{name}' has more than {MAX_CATEGORIES:,} different texts, too many for a "
                    "category.",
                    f"Drop it: 'dataset.drop=[{name}]', or keep it next to predictions: 'dataset.ids=[{name}]'",
                )

    def _holds_numbers(self, name: str) -> bool:
        return name not in self._sure and mostly_numbers(self._names[name])

    def categories(self) -> dict[str, tuple[str, ...]]:
        """Return the names of each category, whole numbers in their order and texts by the alphabet.

        Raises:
            DatasetError: An untyped column holds numbers, and fractions among them.
        """
        found = [name for name in self._features if name in self._names and not self._holds_numbers(name)]
        return {name: tuple(sorted(self._spelled(name), key=_in_order)) for name in found}

    def texts(self) -> tuple[str, ...]:
        """Return the categories whose names are text as it was read: 01 and 1 are two of them."""
        return tuple(name for name in self.categories() if name in self._texts)

    def _spelled(self, name: str) -> set[str]:
        typed = typed_names(self._names[name]) if name in self._untyped else None
        fraction = next((one for one in typed or () if not is_whole(one)), None)
        if fraction is not None:
            raise DatasetError(
                f"feature '{name}' should be a category, but contains fractions such as {fraction}.",
                f"Remove it from dataset.categorical, or read them as text: 'dataset.dtypes={{{name}: category}}'",
            )
        return self._names[name] if typed is None else typed


def names_of(values: pa.ChunkedArray, what: str) -> pa.ChunkedArray:
    """Return a column as text: 3 and 3.0 are both ``3``.

    Raises:
        DatasetError: It holds fractions or floats beyond int64, or is nested.
    """
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        if pa.types.is_floating(values.type):
            if (pc.max(pc.abs(values)).as_py() or 0.0) > MAX_WHOLE:
                message = f"{what} should be a category, but contains floats beyond 2^63."
                raise DatasetError(message, "Store them as integers or text.")
            values = pa.compute.if_else(pa.compute.is_nan(values), None, values).cast(pa.int64())
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"{what} should be a category, but contains {values.type} values: {error}"
        raise DatasetError(message, "Store them as text, or leave out the column with dataset.drop.") from error


def codes_of(values: pa.ChunkedArray, names: Sequence[str], what: str, *, zeros_count: bool = False) -> np.ndarray:
    """Return the code of each value, (rows,) float64; NaN for what is missing or not among ``names``.

    A value in a spelling that is none of the names has the code of the only name for the same boolean, number or time.

    Args:
        values: A column.
        names: Of its categories, in the order of their codes.
        what: Where the column is, for messages.
        zeros_count: Whether the text 01 is another category than 1.

    Raises:
        DatasetError: It holds fractions, or is nested.
    """
    found = names_of(values, what)
    codes = pc.index_in(found, value_set=pa.array(names, pa.string()))
    if codes.null_count > found.null_count:
        others = pc.unique(found.filter(codes.is_null())).drop_null().to_pylist()
        places = places_of(others, names, zeros_count=zeros_count and is_text(values.type))
        alike = pc.index_in(found, value_set=pa.array(list(places), pa.string()))
        codes = pc.coalesce(codes, pc.take(pa.array(list(places.values()), pa.int32()), alike))
    return np.asarray(codes.cast(pa.float64()).to_numpy())


def num_missing(values: pa.ChunkedArray, names: Sequence[str]) -> int:
    """Return how many values of a column are empty or NaN; where all names are numbers or booleans, also as text.

    The empty text is missing unless it is one of the names: CSV files have no other way to write what is missing.
    """
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    missing = pc.is_null(values, nan_is_null=True)
    if is_text(values.type):
        if "" not in names:
            missing = pc.or_(missing, pc.fill_null(pc.equal(values, pa.scalar("", values.type)), False))
        written = pc.is_in(values, value_set=pa.array(MISSING, values.type))
        if pc.any(written).as_py() and typed_names(names) is not None and not set(names) & set(MISSING):
            missing = pc.or_(missing, written)
    return int(pc.sum(missing).as_py() or 0)


def seen_only(
    splits: dict[str, Columns], features: Sequence[str], categories: dict[str, tuple[str, ...]]
) -> tuple[dict[str, Columns], dict[str, tuple[str, ...]]]:
    """Return splits and categories without the names that no row of the train split has: elsewhere they are NaN."""
    kept = dict(categories)
    for name, names in categories.items():
        at = features.index(name)
        column = splits["train"]["x"][:, at]
        seen = np.unique(column[~np.isnan(column)]).astype(np.int64)
        if len(seen) == len(names):
            continue
        kept[name] = tuple(names[code] for code in seen)
        new = np.full(len(names) + 1, np.nan)
        new[seen] = np.arange(len(seen))
        for part in splits.values():
            codes = part["x"][:, at]
            part["x"][:, at] = new[np.where(np.isnan(codes), len(names), codes).astype(np.int64)]
    return splits, kept


def unscaled(
    values: tuple[float, ...], features: Sequence[str], categories: Iterable[str], to: float
) -> tuple[float, ...]:
    """Return statistics of the features, with ``to`` for the codes of categories, which are not quantities."""
    names = set(categories)
    return tuple(to if name in names else value for name, value in zip(features, values, strict=True)) if values else ()


def is_number(value: Any) -> bool:
    """Return whether a value is a number or a text of one; ``nan`` and ``inf`` are."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def tell_of_names(categories: Mapping[str, Sequence[str]], num_rows: int, conf: ColumnsConf) -> None:
    """Warn of features whose texts seem to name the rows of ``train``: nothing can be learned of them.

    Warn also of texts that would be numbers without a sign, unless the config asks for the categories, and of those
    that other tools take as missing.
    """
    for name, names in categories.items():
        tell_of_marks(f"feature '{name}'", names if conf.may_hold_marks else (), conf.na_values)
        is_asked_for = conf.categorical is not None or name in (conf.dtypes or ())
        sign = None if is_asked_for else numbers_but_for(names)
        if sign:
            log.warning(
                "feature '%s' is treated as a category, but its texts, such as '%s', would be numbers without '%s'; "
                "%s, or list the categories: 'dataset.categorical=[%s]'",
                *(name, names[0], sign, how_to_write_numbers(names), ",".join(categories)),
            )
        elif num_rows >= MANY_ROWS and 2 * len(names) > num_rows:
            log.warning(
                "feature '%s' has %d different texts in %d rows; if it identifies them, exclude it: 'dataset.ids=[%s]'",
                *(name, len(names), num_rows, name),
            )


def tell_of_marks(what: str, names: Sequence[str], na_values: Sequence[str] = ()) -> None:
    """Warn of a text among the ``names`` of a column that often stands for a missing value; ``na_values`` do."""
    marks = list(dict.fromkeys(name.strip() for name in names if is_mark(name)))
    if marks and len(marks) < len(names):
        log.warning(
            "%s has the text %s, which is treated as a category; if it marks missing values: %s",
            *(
                what,
                " and ".join(map(repr, marks)),
                f"'dataset.na_values={json.dumps([*na_values, *marks], ensure_ascii=False)}'",
            ),
        )


def mostly_numbers(texts: Collection[Any]) -> bool:
    """Return whether different texts make a column of numbers, some of which can't be read maybe."""
    numbers = sum(map(is_number, texts))
    return numbers > 0 and numbers >= NUMBERS_SHARE * len(texts)


def numbers_but_for(texts: Collection[str]) -> str:
    """Return what keeps numbers from being read, quoted, as in ``1,5`` or ``$8,520.00``; empty if nothing does."""
    if _have_points(texts):
        return "'.'"
    for sign in SIGNS:
        if any(sign in text for text in texts) and mostly_numbers({text.replace(sign, "") for text in texts}):
            return f"'{sign}'"
    found = dict.fromkeys(sign for text in sorted(texts) for sign in _MONEY.findall(text) if sign.strip())
    if not found or not mostly_numbers({_MONEY.sub("", text) for text in texts}):
        return ""
    return " and ".join(f"'{sign}'" for sign in found)


def _have_points(texts: Collection[str]) -> bool:
    """Return whether nearly all texts are numbers, but for points between thousands."""
    numbers = sum(_POINTS.fullmatch(text) is not None for text in texts)
    return numbers >= NUMBERS_SHARE * len(texts) and any("." in text for text in texts) and not mostly_numbers(texts)


def have_decimal_commas(texts: Collection[str]) -> bool:
    """Return whether these are numbers with a comma before the fraction, as in ``1,5``, and not between thousands."""
    there = [text for text in texts if text and not is_mark(text)]
    return all(map(_DECIMAL_COMMA.fullmatch, there)) and not all(map(_THOUSANDS.fullmatch, there))


def how_to_write_numbers(texts: Collection[str]) -> str:
    """Return what to do about texts that would be numbers without a sign."""
    if have_decimal_commas(texts):
        return "if it is a decimal comma: dataset.decimal=comma (of CSV files)"
    return "write them as numbers"


def _in_order(name: str) -> tuple[int, int, str]:
    whole = name.removeprefix("-").isdecimal()
    return (0, int(name), name) if whole else (1, 0, name)
