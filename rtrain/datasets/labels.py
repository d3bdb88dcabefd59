"""The label column of a table: whether it is a class or a number, and which classes there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtrain.datasets.categories import is_number, mostly_numbers
from rtrain.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MAX_WHOLE_NUMBER_CLASSES = 100
"""With ``task: auto``, a label of more different whole numbers than this is a number to predict."""
MAX_CLASSES = 100_000


@dataclass(frozen=True)
class Labels:
    """How the values of the label column become ``y``."""

    column: str
    classes: tuple[Any, ...] | None
    """The values of the classes 0, 1, ...; None for regression."""

    @classmethod
    def stored(cls, column: str, values: Sequence[Any] | None) -> Labels:
        """Take ``values`` back from an encoding."""
        return cls(column, None if values is None else tuple(values))

    @property
    def values(self) -> list[Any] | None:
        """The values of the classes as plain data, for an encoding."""
        return None if self.classes is None else list(self.classes)

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
        return tuple(_name(value) for value in self.classes or ())

    def encode(self, values: pa.Array, where: str, first_row: int) -> np.ndarray:
        """Return ``y``, (rows,): int64 classes or float32 targets.

        Raises:
            DatasetError: A value is missing, or is not among the classes; names the row.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        values = plain(values, self.column, where)
        check_present(values, self.column, where, first_row)
        if self.classes is None:
            if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
                raise _not_a_number(self.column, values.type, where)
            return np.asarray(values.cast(pa.float32()))
        known = pa.array(self.classes)
        if values.type != known.type:
            values = _as_type(values, known.type, self.column, where)
        codes = pc.index_in(values, value_set=known)
        if codes.null_count:
            row = codes.is_null().index(True).as_py()
            raise DatasetError(
                f"{where}: row {first_row + row + 1} has the label {self.column}={values[row].as_py()!r}, "
                "which no row of the train files has.",
                f"The classes are: {', '.join(self.class_names[:10])}{', ...' if len(self.class_names) > 10 else ''}",
            )
        return np.asarray(codes.cast(pa.int64()))


class LabelScan:
    """Looks at all labels once to find out what they are."""

    def __init__(self, column: str, task: str) -> None:
        self._column, self._task = column, task
        self._values: set[Any] = set()
        self._is_number = False
        self._where = ""
        self._text = ""
        """Where the first text is that is no number."""

    def add(self, values: pa.Array, where: str, first_row: int) -> None:
        """Take in some labels.

        Raises:
            DatasetError: One is missing, or of a type that is neither a class nor a number.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = plain(values, self._column, where)
        check_present(values, self._column, where, first_row)
        is_text = not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type))
        if is_text and self._task == "regression":
            raise _not_a_number(self._column, values.type, where)
        self._where = where
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
                f"{where}: the label '{self._column}' has more than {MAX_CLASSES:,} different values; "
                "that can't be classes.",
                "Choose another dataset.label, or dataset.task=regression for numbers.",
            )
        self._is_number |= too_many

    def labels(self) -> Labels:
        """Return what was found.

        Raises:
            DatasetError: There is a single class, or text in one file and numbers in another, or among numbers.
        """
        if self._is_number:
            return Labels(self._column, None)
        if len({isinstance(value, str) for value in self._values}) > 1:
            raise DatasetError(
                f"the label '{self._column}' is text in some files and numbers in others (last read: {self._where})."
            )
        if len(self._values) == 1:
            raise DatasetError(
                f"{self._where}: the label '{self._column}' is {_name(next(iter(self._values)))} in every row; "
                "there is nothing to learn.",
                "Choose another dataset.label.",
            )
        if self._task == "auto" and self._text and mostly_numbers(self._values):
            message = f"{self._text}, but nearly all other labels are numbers."
            raise DatasetError(message, "Correct the value, or take each text as a class: dataset.task=classification")
        return Labels(self._column, tuple(sorted(self._values)))


def plain(values: pa.Array, column: str, where: str) -> pa.Array:
    """Return one array of text, booleans, integers or floats.

    Raises:
        DatasetError: The column holds something else.
    """
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_null(kind):
        return values.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return values.cast(pa.float64())
    if pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _as_type(values, pa.string(), column, where)
    if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return values
    raise DatasetError(
        f"{where}: the label '{column}' is of type {kind}; a label is text, a boolean or a number.",
        "Choose another dataset.label.",
    )


def check_present(values: pa.Array, column: str, where: str, first_row: int) -> None:
    """Raise a DatasetError that names the first row whose label is missing or NaN."""
    import pyarrow.compute as pc

    missing = pc.is_null(values, nan_is_null=True)
    count = pc.sum(missing).as_py() or 0
    if count:
        row = first_row + missing.index(True).as_py() + 1
        also = f", and {count - 1} more" if count > 1 else ""
        raise DatasetError(f"{where}: row {row} has no label ('{column}' is empty or NaN{also}).", "Remove such rows.")


def _as_type(values: pa.Array, kind: Any, column: str, where: str) -> pa.Array:
    import pyarrow as pa

    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(f"{where}: the label '{column}' can't be read as {kind}: {error}") from error


def _not_a_number(column: str, kind: Any, where: str) -> DatasetError:
    return DatasetError(
        f"{where}: the label '{column}' is of type {kind}, and regression needs a number.",
        "Use dataset.task=classification, or choose another dataset.label.",
    )


def _name(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
