"""From arrays in memory to a dataset: what the sources of plain arrays share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rtrain.datasets.base import Columns, Dataset
from rtrain.datasets.checked_columns import check_finite
from rtrain.datasets.conf import RowsConf
from rtrain.datasets.in_memory import Content, resident_dataset
from rtrain.datasets.labels import Labels, LabelScan
from rtrain.datasets.memory import always_resident
from rtrain.datasets.splitting.left_out import read_for
from rtrain.datasets.splitting.shares import split_parts
from rtrain.datasets.tables.column_roles import grouped
from rtrain.errors import DatasetError

SEVERAL_TARGETS = (
    "Keep one of them as the targets. For more of them, masks and the like, use a loop of your own "
    "(trainer.train_loop) or data of your own (trainer.datamodule)"
)


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """Rows of one split as they were found."""

    where: str
    """File, for messages."""
    x: np.ndarray
    """(rows, ...) numbers or booleans; images are uint8 (rows, height, width[, channels]) or channels first."""
    y: Any
    """(rows,) classes or numbers."""
    more: Mapping[str, np.ndarray] = field(default_factory=dict)
    """``weight``, ``group`` and ``base_margin``, as ``Columns`` has them."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What things are called."""

    source: str
    label: str = "y"
    features: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    """Of the classes 0, 1, ...; empty: their values are their names."""


def load_arrays(
    parts: Mapping[str, Arrays], names: Names, conf: RowsConf, task: str, reason: str | None = None
) -> Dataset:
    """Return the dataset of ``parts``, by split, split and normalized as ``conf`` says.

    Args:
        parts: The rows.
        names: Names of the source, the label and the classes.
        conf: What the config says.
        task: What to learn; auto: by the targets.
        reason: Why the rows are in memory; None: the source knows no other way.

    Raises:
        DatasetError: The arrays don't fit together, or hold what can't be learned from.
    """
    x = {split: inputs(part) for split, part in parts.items()}
    if len({values.dtype for values in x.values()}) > 1:
        x = {split: inputs(part, "float64") for split, part in parts.items()}
    reason = always_resident(sum(values.nbytes for values in x.values())) if reason is None else reason
    check_shapes(x, parts)
    for split, part in parts.items():
        with read_for(split):
            check_finite(x[split], f"{part.where}: ", names.features)
    labels = scanned(parts, names.label, task)
    columns = dict[str, Columns]()
    for split, part in parts.items():
        with read_for(split):
            columns[split] = grouped({"x": x[split], "y": targets(part, labels), **part.more})
    return _coded(columns, labels, names, conf, _task(columns["train"], labels, task), reason)


def _coded(
    columns: Mapping[str, Columns], labels: Labels, names: Names, conf: RowsConf, task: str, reason: str
) -> Dataset:
    splits = split_parts(columns, conf, task == "classification")
    class_names = names.classes or labels.class_names
    content = Content(
        name=names.source,
        task=task,
        class_names=class_names if task == "classification" else (),
        feature_names=names.features,
        memory_reason=reason,
    )
    dataset = resident_dataset(splits, content, conf)
    train = splits["train"]
    info = replace(
        dataset.info,
        dtype=str(train["x"].dtype),
        target_dtype=labels.targets.dtype,
        merged_targets=labels.targets.merged,
    )
    encoding = {
        "task": task,
        "label": names.label,
        **labels.encoding,
        "input_shape": list(info.input_shape),
        "dtype": info.dtype,
    }
    return Dataset(info, dataset.splits, encoding)


def inputs(part: Arrays, dtype: str | None = None) -> np.ndarray:
    """Return ``x`` as trainers take it: uint8 (rows, channels, height, width), or float32 or float64.

    Args:
        part: The rows.
        dtype: Of numbers other than images; None: floats as they are, whole numbers as float32 if it keeps them.

    Raises:
        DatasetError: It holds no numbers, no row, or single numbers instead of rows.
    """
    x = np.asarray(part.x)
    if x.dtype == object or x.dtype.kind not in "biuf":
        raise DatasetError(f"{part.where}: the inputs are of type {x.dtype}; numbers are needed.")
    if not len(x):
        raise DatasetError(f"{part.where}: there are no rows.")
    if x.ndim < 2:
        shape = " x ".join(map(str, x.shape))
        raise DatasetError(f"{part.where}: the inputs are of shape {shape}; rows of one or more numbers are needed.")
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        return _channels_first(x)
    if dtype is None and x.dtype not in (np.float32, np.float64):
        return narrowest(x)
    return x.astype(dtype or x.dtype, copy=False)


def narrowest(x: np.ndarray) -> np.ndarray:
    """Return numbers as float32 if it keeps all of them, else as float64."""
    narrow = x.astype(np.float32)
    kept = np.can_cast(x.dtype, np.float32) or np.array_equal(narrow, x, equal_nan=x.dtype.kind == "f")
    return narrow if kept else x.astype(np.float64)


def _channels_first(images: np.ndarray) -> np.ndarray:
    if images.ndim == 3:
        return images[:, None]
    return images.transpose(0, 3, 1, 2) if images.shape[1] not in (1, 3) and images.shape[3] in (1, 3) else images


def check_shapes(x: Mapping[str, np.ndarray], parts: Mapping[str, Arrays]) -> None:
    """Check that ``parts`` fit together; ``x`` has their rows, or the first of them, as trainers take them.

    Raises:
        DatasetError: Their rows differ in shape, some are pixels and others not, or columns differ in length.
    """
    for split, values in x.items():
        part = parts[split]
        if values.shape[1:] != x["train"].shape[1:]:
            mine, other = (" x ".join(map(str, one.shape[1:])) for one in (values, x["train"]))
            raise DatasetError(f"{part.where}: rows are of shape {mine}, those of {parts['train'].where} of {other}.")
        check_pixels(values, str(x["train"].dtype), part.where)
        check_beside(part, {"y": part.y, **part.more})


def check_pixels(x: np.ndarray, learned: str, where: str) -> None:
    """Refuse pixels of uint8 next to numbers of another type, and the other way round: trainers divide uint8 by 255.

    Args:
        x: Rows as trainers take them.
        learned: Type of the train rows.
        where: File, for messages.

    Raises:
        DatasetError: Names both types.
    """
    if (x.dtype == "uint8") != (learned == "uint8"):
        which = "uint8, but the train rows are not" if x.dtype == "uint8" else "another type than the train rows, uint8"
        raise DatasetError(
            f"{where}: the inputs are of {which}.", "Save them as those: pixels of uint8 count as 0 to 1."
        )


def check_beside(part: Arrays, columns: Mapping[str, Any]) -> None:
    """Check what comes with the rows of ``part``.

    Raises:
        DatasetError: There are more or fewer values than rows, a weight is negative, or a weight or a score to start
            from is not a finite number.
    """
    for name, values in columns.items():
        count = len(values) if np.ndim(values) else "a single number"
        if count != len(part.x):
            raise DatasetError(f"{part.where}: there are {len(part.x)} rows of inputs, but {count} of {name}.")
        if name in ("weight", "base_margin"):
            _check_numbers(np.asarray(values), name, part.where)


def _check_numbers(values: np.ndarray, name: str, where: str) -> None:
    is_weight = name == "weight"
    if values.dtype.kind not in "biuf" or values.ndim > (1 if is_weight else 2):
        shape = " x ".join(map(str, values.shape))
        raise DatasetError(f"{where}: {name} is of type {values.dtype} and shape {shape}; numbers by row are needed.")
    wrong = ~np.isfinite(values) | (is_weight & (values < 0))
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        hint = "A weight must be 0 or more." if is_weight else None
        raise DatasetError(f"{where}: {name} is {values[row]} in row {row + 1}.", hint)


def scanned(parts: Mapping[str, Arrays], label: str, task: str) -> Labels:
    """Return what the targets of ``train`` are, as ``task`` wants them."""
    train = parts["train"]
    if task == "ranking" or (task == "auto" and "group" in train.more):
        return Labels(label, None)
    scan = LabelScan(label, task)
    scan.add(_values(train), train.where, 0)
    return scan.labels()


def targets(part: Arrays, labels: Labels, first_row: int = 0) -> np.ndarray:
    """Return ``y``, (rows,): int64 classes or float32 numbers; messages number the rows from ``first_row`` on."""
    return labels.encode(_values(part), part.where, first_row)


def _values(part: Arrays) -> Any:
    """Return the targets as Arrow knows them; (rows, 1) counts as (rows,)."""
    y = np.asarray(part.y)
    if isinstance(part.y, list) and y.dtype.kind == "f" and all(isinstance(one, int) for one in part.y):
        y = np.asarray(part.y, object)  # NumPy rounds numbers beyond int64 next to others
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        shape = " x ".join(map(str, y.shape))
        raise DatasetError(f"{part.where}: the targets are of shape {shape}; one per row is needed.", SEVERAL_TARGETS)
    if y.dtype.kind == "S":
        y = y.astype(str)
    try:
        return _arrow(y.tolist()) if y.dtype.kind in "OU" else pa.array(_native(y))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        kind = f"{part.where}: the targets are of type {y.dtype}"
        raise DatasetError(f"{kind}; a label is text, a boolean or a number.") from error


def _arrow(values: list[Any]) -> pa.Array:
    """Return Python objects as Arrow knows them; it does not guess the types of whole numbers beyond int64."""
    try:
        return pa.array(values)
    except OverflowError as error:
        for kind in (pa.uint64(), pa.decimal128(38, 0)):
            with suppress(OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):
                return pa.array(values, kind)
        raise pa.ArrowInvalid(str(error)) from error


def _native(y: np.ndarray) -> np.ndarray:
    """Return numbers as Arrow takes them: in the byte order of the machine, of 64 bits at most."""
    return y.astype(np.float64 if y.dtype.kind == "f" and y.itemsize > 8 else y.dtype.newbyteorder("="), copy=False)


def _task(train: Columns, labels: Labels, task: str) -> str:
    if "group" in train and task not in ("auto", "ranking"):
        message = f"the rows have the queries of a ranking, but dataset.task is {task}."
        raise DatasetError(message, "Use dataset.task=ranking, or leave the queries out.")
    if task == "ranking" and "group" not in train:
        raise DatasetError(
            "dataset.task=ranking needs to know which rows belong to one query.",
            "Add qid: to the rows, or a .query file.",
        )
    return "ranking" if task == "ranking" or (task == "auto" and "group" in train) else labels.task


def whole_numbers(y: np.ndarray) -> np.ndarray:
    """Return int64 where floats are all whole, as in text formats that know no types."""
    return y.astype(np.int64) if y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.trunc(y)).all() else y


def feature_names(count: int, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return ``names``, or f0, f1, ... where there are none."""
    return tuple(names) or tuple(f"f{index}" for index in range(count))
