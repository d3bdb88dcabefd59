"""The label column of a table: whether it is a class or a number, and which classes there are."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rtrain.datasets.tables.casts import WHOLE
from rtrain.datasets.tables.categories import (
    how_to_write_numbers,
    is_number,
    is_text,
    mostly_numbers,
    numbers_but_for,
    tell_of_marks,
)
from rtrain.errors import DatasetError

log = logging.getLogger(__name__)
MAX_WHOLE_NUMBER_CLASSES = 100
"""With ``task: auto``, a label of more different whole numbers than this is a number to predict."""
MANY_CLASSES = 20
"""Fewer classes may be rare by chance: a few rows of a large data set say nothing of it."""
MAX_INT64 = 2**63 - 1
MAX_CLASSES = 100_000
EXACT = 2.0**24
"""Up to it, a float32 that is whole is exactly that number."""
MERGING = 1e-3
"""Part of the range of all targets by which neighbours in float32 may differ."""


@dataclass(frozen=True)
class Labels:
    """How the values of the label column become ``y``."""

    column: str
    classes: tuple[Any, ...] | None
    """The values of the classes 0, 1, ...; None for regression."""
    targets: Targets = field(default_factory=lambda: Targets())
    """Of a regression, what holds the numbers."""

    @classmethod
    def stored(cls, column: str, encoding: Mapping[str, Any]) -> Labels:
        """Take back what ``encoding`` gave."""
        values = encoding["classes"]
        # Checkpoints of before that knew float32 alone.
        targets = Targets(dtype=encoding.get("target_dtype", "float32"))
        return cls(column, None if values is None else tuple(values), targets)

    @property
    def encoding(self) -> dict[str, Any]:
        """How labels become ``y``, as plain data that a checkpoint keeps."""
        values = None if self.classes is None else list(self.classes)
        return {"classes": values, **({"target_dtype": "float64"} if self.targets.dtype == "float64" else {})}

    @property
    def num_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return None if self.classes is None else len(self.classes)

    @property
    def task(self) -> str:
        """``classification`` or ``regression``."""
        return "regression" if self.classes is None else "classification"

    @property
    def class_names(self) -> tuple[str, ...]:
        """What the classes are called: their value as text."""
        return tuple(class_name(value) for value in self.classes or ())

    def encode(self, values: pa.Array, where: str, first_row: int) -> np.ndarray:
        """Return ``y``, (rows,): int64 classes, or targets of ``targets.dtype``.

        Raises:
            DatasetError: A value is missing, too large, or not among the classes; names the row.
        """
        values = plain(values, self.column, where, first_row)
        check_present(values, self.column, where, first_row)
        if self.classes is None:
            if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
                raise _not_a_number(self.column, values.type, where)
            return self._numbers(values, where, first_row)
        known = _arrow(self.classes)
        read = values if values.type == known.type else _as_type(values, known.type, self.column, where)
        codes = pc.index_in(read, value_set=known)
        if codes.null_count:
            row = codes.is_null().index(True).as_py()
            raise DatasetError(
                f"{where}: row {first_row + row + 1} has the label {self.column}={values[row].as_py()!r}, "
                "which is in no row of the train files.",
                known_classes(self.class_names),
            )
        return np.asarray(codes.cast(pa.int64()))

    def _numbers(self, values: pa.Array, where: str, first_row: int) -> np.ndarray:
        wide = np.asarray(values.cast(pa.float64(), safe=False))
        wrong = np.zeros(len(wide), bool)
        if pa.types.is_integer(values.type) and (np.abs(wide) >= WHOLE).any():
            wrong = wide.astype(object) != np.asarray(values).astype(object)
        with np.errstate(over="ignore"):
            found = wide.astype(self.targets.dtype)
        wrong |= ~np.isfinite(found)
        if wrong.any():
            row = int(wrong.argmax())
            at = f"{where}: row {first_row + row + 1} has {self.column}={values[row].as_py()!r}"
            if not np.isfinite(wide[row]):
                raise DatasetError(f"{at}, but targets must be finite.", "Correct the value, or remove the row.")
            raise DatasetError(
                f"{at}, which a {self.targets.dtype} can't hold.",
                f"Correct the value, or round all of them: 'dataset.dtypes={{{self.column}: float64}}'",
            )
        return found


@dataclass(frozen=True)
class Targets:
    """What holds the numbers of a regression."""

    dtype: str = "float32"
    """``float64`` where float32 would change whole numbers, or merge targets."""
    merged: bool = False
    """float32 would make many different targets equal, or infinite."""

    @classmethod
    def between(cls, low: float, high: float) -> Targets:
        """Return what holds all numbers from ``low`` to ``high``."""
        largest, span = max(abs(low), abs(high)), high - low
        with np.errstate(over="ignore"):
            step = float(np.spacing(np.float32(largest)))
        merged = span > 0 and not step <= MERGING * span
        return cls("float64" if merged or largest > EXACT else "float32", merged)


class LabelScan:
    """Looks at all labels once to find out what they are."""

    def __init__(self, column: str, task: str) -> None:
        self._column, self._task = column, task
        self._values: set[Any] = set()
        self._num_rows = 0
        self._is_number = False
        self._where = ""
        self._range = math.inf, -math.inf
        self._text = ""
        """Position of the first text that is not a number."""
        self._may_be_numbers = False
        """Some labels are text of a column that doesn't say that they are categories."""

    def add(self, values: pa.Array, where: str, first_row: int) -> None:
        """Take in some labels.

        Raises:
            DatasetError: One is missing, or of a type that is neither a class nor a number.
        """
        if not len(values):
            return  # a file without rows says nothing of types: CSV's have none then
        is_declared = pa.types.is_dictionary(values.type)
        values = plain(values, self._column, where, first_row)
        check_present(values, self._column, where, first_row)
        self._may_be_numbers |= pa.types.is_string(values.type) and not is_declared
        is_text = not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
        if is_text and self._task == "regression":
            raise _not_a_number(self._column, values.type, where)
        self._where = where
        self._num_rows += len(values)
        if not is_text and not pa.types.is_boolean(values.type):
            self._widen(values)
        self._is_number |= self._task == "regression" or (self._task == "auto" and pa.types.is_floating(values.type))
        if self._is_number:
            return
        different = pc.unique(values).to_pylist()
        self._values.update(different)
        text = next((one for one in different if not is_number(one)), None)
        if text is not None and not self._text:
            self._text = f"{where}: row {first_row + values.index(text).as_py() + 1} has {self._column}={text!r}"
        too_many = len(self._values) > (
            MAX_WHOLE_NUMBER_CLASSES if self._task == "auto" and not is_text else MAX_CLASSES
        )
        if too_many and (is_text or self._task == "classification"):
            raise DatasetError(
                f"{where}: the label '{self._column}' has more than {MAX_CLASSES:,} different values, too many for "
                "classes.",
                "Choose another dataset.label, or dataset.task=regression for numbers.",
            )
        self._is_number |= too_many

    def _widen(self, values: pa.Array) -> None:
        found = pc.min_max(values.cast(pa.float64(), safe=False)).as_py()
        if found["min"] is not None:
            self._range = min(self._range[0], found["min"]), max(self._range[1], found["max"])

    def labels(self) -> Labels:
        """Return what was found.

        Raises:
            DatasetError: There is a single class, or text in one file and numbers in another, or among numbers, or text
                that holds nothing but numbers.
        """
        if self._is_number:
            return Labels(self._column, None, Targets.between(*self._range))
        if len({isinstance(value, str) for value in self._values}) > 1:
            raise DatasetError(
                f"the label '{self._column}' is text in some files and numbers in others (last read: {self._where})."
            )
        if len(self._values) == 1:
            raise DatasetError(
                f"{self._where}: the label '{self._column}' is {class_name(next(iter(self._values)))} in every row, "
                "so there is nothing to learn.",
                "Choose another dataset.label.",
            )
        if self._task == "auto":
            self._check_text()
        if self._task == "auto" and all(isinstance(value, str) for value in self._values):
            tell_of_marks(f"the label '{self._column}'", sorted(self._values))
        self._tell_of_rare_classes()
        return Labels(self._column, self._classes())

    def _tell_of_rare_classes(self) -> None:
        """Warn of classes that most rows have for themselves: numbers to predict, or names of rows."""
        count = len(self._values)
        if count < MANY_CLASSES or self._num_rows >= 2 * count:
            return
        hint = "choose another dataset.label if it identifies rows"
        if all(isinstance(value, int | float) for value in self._values):
            hint = "to predict it as a number: dataset.task=regression"
        log.warning(
            "%d classes in %d rows: almost every row has a different value of the label '%s', such as %s; %s",
            *(count, self._num_rows, self._column, class_name(min(self._values)), hint),
        )

    def _classes(self) -> tuple[Any, ...]:
        """Return the values in their order.

        Raises:
            DatasetError: There is no type for all of them.
        """
        found = tuple(sorted(self._values))
        try:
            _arrow(found)
        except pa.ArrowInvalid as error:
            message = f"the label '{self._column}' is of different types in different files: {error}"
            raise DatasetError(message, f"Set one type: 'dataset.dtypes={{{self._column}: string}}'") from error
        return found

    def _check_text(self) -> None:
        """Refuse text that may be meant as numbers.

        Raises:
            DatasetError: Nearly all texts are numbers, all of them, or would be without a sign.
        """
        if self._text and mostly_numbers(self._values):
            message = f"{self._text}, but almost all other labels are numbers."
            raise DatasetError(message, "Correct the value, or treat each text as a class: dataset.task=classification")
        signs = numbers_but_for(self._values) if self._text else ""
        if signs:
            message = f"{self._text}: without {signs}, almost all labels are numbers."
            hint = f"{how_to_write_numbers(self._values)}, or treat each text as a class: dataset.task=classification"
            raise DatasetError(message, hint[0].upper() + hint[1:])
        if self._may_be_numbers and not self._text:
            raise DatasetError(
                f"{self._where}: the label '{self._column}' is text, but each text is a number, such as "
                f"{min(self._values)!r}: it could be a class or a number to predict.",
                f"Treat each text as a class: dataset.task=classification; or as a number, {_as_numbers(self._column)}",
            )


def plain(values: pa.Array, column: str, where: str, first_row: int) -> pa.Array:
    """Return one array of text, booleans, integers or floats.

    Raises:
        DatasetError: The column holds something else, or whole numbers with more digits; names the row.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_null(kind):
        return values.cast(pa.float64())
    if pa.types.is_decimal(kind):
        _check_digits(values, column, where, first_row)
        return values.cast(pa.float64())
    if pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _as_type(values, pa.string(), column, where)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return pc.add(values, pa.scalar(0.0, kind))  # -0.0 is the class 0.0
    if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values
    raise DatasetError(
        f"{where}: the label '{column}' is of type {kind}; a label is text, a boolean or a number.",
        "Choose another dataset.label.",
    )


def _check_digits(values: pa.Array, column: str, where: str, first_row: int) -> None:
    """Raise a DatasetError that names the first decimal that is a whole number, and another one as a float64."""
    if (pc.max(pc.abs(values.cast(pa.float64()))).as_py() or 0.0) < WHOLE:
        return
    for row, value in enumerate(values.to_pylist()):
        if value is not None and value == value.to_integral_value() and value != float(value):
            raise DatasetError(
                f"{where}: row {first_row + row + 1} has {column}={value}, which a float64 can't hold.",
                f"Correct the value, or round all of them: 'dataset.dtypes={{{column}: float64}}', or treat each one "
                f"as a class: 'dataset.dtypes={{{column}: category}}'",
            )


def check_present(values: pa.Array, column: str, where: str, first_row: int) -> None:
    """Raise a DatasetError that names the first row whose label is missing or NaN."""
    missing = pc.is_null(values, nan_is_null=True)
    count = pc.sum(missing).as_py() or 0
    if count:
        row = first_row + missing.index(True).as_py() + 1
        also = f", and {count - 1} more" if count > 1 else ""
        raise DatasetError(f"{where}: row {row} has no label ('{column}' is empty or NaN{also}).", "Remove such rows.")


def _arrow(classes: Sequence[Any]) -> pa.Array:
    is_huge = any(isinstance(one, int) and one > MAX_INT64 for one in classes)
    return pa.array(classes, pa.uint64() if is_huge else None)


def _as_type(values: pa.Array, kind: Any, column: str, where: str) -> pa.Array:
    """Return labels as values of another type; as booleans, numbers other than 0 and 1 become null."""
    try:
        found = values.cast(kind)
        if pa.types.is_boolean(kind) and not is_text(values.type):
            found = pc.if_else(pc.equal(found.cast(values.type), values), found, None)
        return found
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(f"{where}: the label '{column}' can't be read as {kind}: {error}") from error


def _not_a_number(column: str, kind: Any, where: str) -> DatasetError:
    return DatasetError(
        f"{where}: the label '{column}' is of type {kind}, and regression needs a number.",
        "Use dataset.task=classification, or choose another dataset.label. If it contains numbers as text, "
        f"{_as_numbers(column)}",
    )


def _as_numbers(column: str) -> str:
    return f"in tables: 'dataset.dtypes={{{column}: float64}}'"


def class_name(value: Any) -> str:
    """Return what a class is called: its value as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE else str(value)


def known_classes(names: Sequence[str]) -> str:
    """Return the line of an error that lists the classes of training, the first ones of many."""
    return f"Known classes: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"


def trained_classes(encoding: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the classes of training are called; none of a regression.

    Args:
        encoding: ``Dataset.encoding``, which may have names for numbers of classes.
    """
    names, classes = encoding.get("label_names"), encoding["classes"] or ()
    return tuple(names[int(one)] for one in classes) if names else tuple(map(class_name, classes))
