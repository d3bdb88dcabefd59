"""Makes a dataset of rows that are in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from rtrain.datasets.base import Columns, Dataset, DatasetInfo, ResidentSplit
from rtrain.datasets.checked_columns import BESIDE, checked_columns
from rtrain.datasets.conf import ColumnsConf, RowsConf
from rtrain.datasets.mean_std import Moments, given_statistics, tell_of_digits, tell_of_empty
from rtrain.errors import DatasetError


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a source knows about its rows, wherever they live."""

    name: str
    task: str
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    memory_reason: str

    @property
    def num_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return len(self.class_names) if self.task == "classification" else None


def resident_dataset(splits: Mapping[str, Columns], content: Content, conf: RowsConf) -> Dataset:
    """Return the dataset of ``splits`` in memory, with statistics of ``train`` as ``conf.normalize`` says.

    Raises:
        DatasetError: ``conf.normalize`` gives too few or too many numbers, or the columns don't fit ``content``.
    """
    splits = checked_columns(splits, content.task, content.num_classes)
    x, y = (splits["train"][name] for name in ("x", "y"))
    if content.feature_names and len(content.feature_names) != x.shape[1]:
        message = f"the source names {len(content.feature_names)} features, and its rows have {x.shape[1]}."
        raise DatasetError(message, "Fix the source.")
    statistics = given_statistics(conf.normalize, x.shape[1])
    if statistics is None:
        moments = Moments()
        moments.add(x)
        statistics = moments.statistics
        tell_of_empty(moments.mean, content.feature_names)
    remedy = "dataset.dtype=float64" if isinstance(conf, ColumnsConf) else "subtract a constant from them in the data"
    tell_of_digits(str(x.dtype), *statistics, content.feature_names, remedy)
    info = DatasetInfo(
        name=content.name,
        task=content.task,
        input_shape=tuple(x.shape[1:]),
        dtype=str(x.dtype),
        num_classes=content.num_classes,
        class_names=content.class_names,
        feature_names=content.feature_names,
        num_rows={name: len(columns["y"]) for name, columns in splits.items()},
        fingerprint=fingerprint(splits, content.class_names),
        target_dtype=str(y.dtype) if y.dtype.kind == "f" else "float32",
        memory="resident",
        memory_reason=content.memory_reason,
        missing=_missing(splits, content.feature_names),
        columns=tuple(name for name in BESIDE if any(name in columns for columns in splits.values())),
        mean=statistics[0],
        std=statistics[1],
    )
    return Dataset(info, {name: ResidentSplit(columns) for name, columns in splits.items()})


def _missing(splits: Mapping[str, Columns], names: Sequence[str]) -> tuple[str, ...]:
    """Return which channels or features have NaN in any split, by ``names`` if they have some."""
    x = [part["x"] for part in splits.values() if part["x"].dtype.kind == "f"]
    some = [np.isnan(one).any(axis=tuple(axis for axis in range(one.ndim) if axis != 1)) for one in x]
    places: list[int] = np.flatnonzero(np.any(some, axis=0)).tolist() if some else []
    return tuple(names[place] if names else f"feature {place}" for place in places)


def fingerprint(splits: Mapping[str, Columns], class_names: tuple[str, ...]) -> str:
    """Return the sha256 over all values of all splits, and what they are called."""
    digest = sha256(repr(class_names).encode())
    for split, columns in splits.items():
        for name, values in columns.items():
            digest.update(f"{split}/{name} {values.dtype} {values.shape}".encode())
            if values.dtype == object:
                digest.update(_as_json(values))
            else:
                digest.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _as_json(values: np.ndarray) -> bytes:
    """Return rows of texts, words or tags as bytes."""
    rows = values.tolist()
    if not all(isinstance(row, str) for row in rows):
        rows = [getattr(row, "tolist", lambda row=row: row)() for row in rows]
    return json.dumps(rows).encode()
