"""What a source returns, held against what trainers expect: mistakes of a source of your own end here, named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rtrain.config.did_you_mean import there_are
from rtrain.datasets.base import Columns
from rtrain.errors import DatasetError

BESIDE = ("weight", "group", "base_margin")
"""What rows may have with their inputs and targets."""
COLUMNS = ("x", "y", *BESIDE)
"""What rows in memory may have."""
FIX = "Fix the source."
OF_ROWS = ("classification", "regression", "ranking")
"""Tasks with one target per row; others have one for each place of a sequence."""
NUMBERS = "biuf"
"""Kinds of NumPy's types."""
CHUNK_VALUES = 1 << 20


def check_parts(parts: Mapping[str, Mapping[str, Any]], *, stratify: bool) -> None:
    """Check what is to be split into shares: a train split, of arrays that have a ``y``.

    Raises:
        DatasetError: Names the split and the column.
    """
    if "train" not in parts:
        raise DatasetError("the source returns no split 'train'.", FIX)
    for split, columns in parts.items():
        _check_there(split, "y", columns)
        for name, values in columns.items():
            if not isinstance(values, np.ndarray):
                kind = f"{type(values).__module__}.{type(values).__qualname__}".removeprefix("builtins.")
                raise DatasetError(
                    f"{_column(split, name)} is a {kind}, not an array.", f"Return np.asarray({name}), say."
                )
        if stratify:
            _check_shape(split, "y", columns["y"])


def checked_columns(splits: Mapping[str, Columns], task: str, num_classes: int | None) -> dict[str, Columns]:
    """Return rows as trainers take them: labels as int64, and numbers to predict as the floats that keep all of them.

    Args:
        splits: Columns by split.
        task: What to learn.
        num_classes: Number of classes; None: not a classification.

    Raises:
        DatasetError: Names the split and the column, and the first row that is wrong.
    """
    for split, columns in splits.items():
        if other := set(columns) - set(COLUMNS):
            raise DatasetError(f"the source returns a column '{min(other)}'.", there_are(COLUMNS))
        _check_there(split, "x", columns)
        _check_weights(split, columns.get("weight"))
    for name in ("group", "base_margin"):
        without = [split for split, columns in splits.items() if name not in columns]
        if 0 < len(without) < len(splits):
            having = next(split for split in splits if split not in without)
            message = f"the split '{without[0]}' has no {name}, but '{having}' has one."
            raise DatasetError(message, f"Give {name} to all splits, or to none.")
    if task not in OF_ROWS:
        return dict(splits)
    targets = {}
    for split, columns in splits.items():
        x, y = columns["x"], columns["y"]
        if x.dtype.kind not in NUMBERS or x.ndim < 2:
            expected = "numbers of shape (rows, features) or (rows, channels, height, width) are needed"
            raise DatasetError(f"{_column(split, 'x')} is of type {x.dtype} and shape {x.shape}: {expected}.", FIX)
        _check_same_rows(split, x, splits["train"]["x"])
        check_finite(x, f"{_column(split, 'x')}: ")
        _check_shape(split, "y", y)
        targets[split] = _targets(split, y, task) if num_classes is None else _classes(split, y, num_classes)
    dtype = "int64"
    if num_classes is None:
        dtype = "float64" if any(map(_is_wide, targets.values())) else "float32"
    return {split: {**columns, "y": targets[split].astype(dtype, copy=False)} for split, columns in splits.items()}


def check_finite(x: np.ndarray, where: str, names: Sequence[str] = (), row_of: Callable[[int], int] = int) -> None:
    """Refuse infinite values, of which no mean can be taken. NaN is a missing value.

    Args:
        x: Rows.
        where: What the message begins with.
        names: Names of the features, if they have some.
        row_of: Returns the number that a row of ``x`` has in the data, from 0.

    Raises:
        DatasetError: Names the row and the feature or channel.
    """
    found = first_infinite(x)
    if found is not None:
        row, place = found
        name = f"feature '{names[place]}'" if names else f"place {place}"
        message = f"{where}{name} is infinite, or too large for {x.dtype}, in row {row_of(row) + 1}."
        raise DatasetError(message, "Correct the value, or leave the row out.")


def first_infinite(x: np.ndarray) -> tuple[int, int] | None:
    """Return the row of the first infinite value, and its feature or channel; None if there is none."""
    if x.dtype.kind != "f" or x.ndim < 2:
        return None
    count = max(1, CHUNK_VALUES // max(1, x[:1].size))
    for start in range(0, len(x), count):
        chunk = x[start : start + count]
        if not np.isfinite(chunk).all() and len(found := np.argwhere(np.isinf(chunk))):
            return start + int(found[0][0]), int(found[0][1])
    return None


def _check_there(split: str, name: str, columns: Mapping[str, Any]) -> None:
    if name not in columns:
        raise DatasetError(f"the source returns no {name} for the split '{split}'.", there_are(sorted(columns)))


def _check_same_rows(split: str, x: np.ndarray, train: np.ndarray) -> None:
    """Refuse rows of another shape than those of train."""
    if x.shape[1:] != train.shape[1:]:
        rows = f"{_column(split, 'x')} has rows of shape {x.shape[1:]}, and those of 'train' have {train.shape[1:]}."
        raise DatasetError(rows, "Fix the source: all splits need the same features.")


def _check_shape(split: str, name: str, values: np.ndarray) -> None:
    if values.ndim != 1:
        hint = f"Fix the source: {name}.ravel(), say." if values.size == len(values) else FIX
        raise DatasetError(f"{_column(split, name)} is of shape {values.shape}: one value per row is needed.", hint)


def _check_weights(split: str, weight: np.ndarray | None) -> None:
    if weight is None:
        return
    _check_shape(split, "weight", weight)
    wrong = weight[~(weight >= 0)].tolist()
    if wrong:
        raise DatasetError(f"a row of the split '{split}' weighs {wrong[0]}.", "A weight must be 0 or more.")


def _classes(split: str, y: np.ndarray, num_classes: int) -> np.ndarray:
    expected = f"with {num_classes} class names, a label is a whole number from 0 to {num_classes - 1}"
    if num_classes < 2:
        expected = f"a classification needs class names, and there are {num_classes}"
    if y.dtype.kind not in NUMBERS:
        raise DatasetError(f"{_column(split, 'y')} is of type {y.dtype}: {expected}.", FIX)
    numbers = y.astype(np.int64) if y.dtype.kind == "b" else y
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < num_classes) & (numbers % 1 == 0)))
    if wrong.size:
        row = int(wrong[0])
        raise DatasetError(f"the label of row {row} of the split '{split}' is {y[row]}: {expected}.", FIX)
    return y


def _targets(split: str, y: np.ndarray, task: str) -> np.ndarray:
    if y.dtype.kind not in NUMBERS:
        raise DatasetError(f"{_column(split, 'y')} is of type {y.dtype}: a {task} needs numbers.", FIX)
    wrong = np.flatnonzero(~np.isfinite(y)) if y.dtype.kind == "f" else np.empty(0, int)
    if wrong.size:
        row = int(wrong[0])
        raise DatasetError(f"the target of row {row} of the split '{split}' is {y[row]}.", FIX)
    return y


def _is_wide(y: np.ndarray) -> bool:
    """Return whether float32 has too few digits for some of the numbers, or may have."""
    if y.dtype.kind == "f":
        return y.dtype.itemsize > 4
    return bool(len(y)) and max(abs(int(y.min())), abs(int(y.max()))) > 2**24


def _column(split: str, name: str) -> str:
    return f"{name} of the split '{split}'"
