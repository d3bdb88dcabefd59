"""Small data for tests of trainers: in memory, learned in a few epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rtrain.datasets.base import Columns, Dataset, DatasetInfo, ResidentSplit, Split, take
from rtrain.datasets.streamed import RowFilter, StreamSplit, pieces_of


def in_memory(
    rows: Mapping[str, Columns], task: str, split: Callable[[Columns], Split] = ResidentSplit, **facts: Any
) -> Dataset:
    """Return rows as a dataset whose ``info`` says what they are.

    Args:
        rows: The columns of each split, ``train`` among them.
        task: As in ``DatasetInfo``.
        split: Makes a split of its columns.
        facts: Fields of ``DatasetInfo``, in addition to or in place of those that follow from the rows, e.g.
            ``num_classes``.
    """
    splits = {name: split(one) for name, one in rows.items()}
    found = {
        "name": "small",
        "input_shape": rows["train"]["x"].shape[1:],
        "num_classes": None,
        "columns": tuple(name for name in ("weight", "group", "base_margin") if name in rows["train"]),
        "num_rows": {name: one.num_rows for name, one in splits.items()},
        "fingerprint": "",
        "memory": "resident",
        "memory_reason": "",
    }
    return Dataset(DatasetInfo(**{**found, "task": task, **facts}), splits)


def small_dataset(
    task: str = "classification",
    shape: tuple[int, ...] = (1, 4, 4),
    num_rows: tuple[int, int] = (150, 37),
    dtype: str = "float32",
    split: Callable[[Columns], Split] = ResidentSplit,
) -> Dataset:
    """Return three classes, or a linear function, in ``train`` and ``test``.

    Args:
        task: ``classification`` or ``regression``.
        shape: Of one row: (channels, height, width), or (features,).
        num_rows: Of train and test.
        dtype: ``float32`` or ``uint8``.
        split: Makes a split of its columns.
    """
    rng = np.random.default_rng(0)
    centers, line = rng.normal(size=(3, *shape)), rng.normal(size=shape)
    columns = {}
    for name, count in zip(("train", "test"), num_rows, strict=True):
        classes = rng.integers(0, 3, count)
        x = (centers[classes] + rng.normal(size=(count, *shape)) / 2).astype("float32")
        y = classes if task == "classification" else (x * line).reshape(count, -1).sum(1).astype("float32")
        if dtype == "uint8":
            x = np.clip(x * 40 + 128, 0, 255).astype("uint8")
        columns[name] = {"x": x, "y": y}
    num_classes = 3 if task == "classification" else None
    scale = {"mean": (0.1,) * shape[0], "std": (2.0,) * shape[0]}
    return in_memory(columns, task, split, dtype=dtype, num_classes=num_classes, **scale)


def small_text(length: int = 6, num_tokens: int = 5, num_rows: tuple[int, int] = (60, 15)) -> Dataset:
    """Return sequences that count up, each from another token: the next token follows from the one before."""
    rng, columns = np.random.default_rng(0), {}
    for name, count in zip(("train", "test"), num_rows, strict=True):
        tokens = (rng.integers(0, num_tokens, (count, 1)) + np.arange(length + 1)) % num_tokens
        columns[name] = {"x": tokens[:, :-1].astype("int64"), "y": tokens[:, 1:].astype("int64")}
    return in_memory(columns, "language-modeling", dtype="int64", num_classes=num_tokens)


def few_rows(dataset: Dataset, num_rows: int = 40) -> Dataset:
    """Return the first rows of each split of a dataset in memory, or what there is of them."""
    splits = {}
    for name, split in dataset.splits.items():
        whole = next(split.own_rows(0, 1))
        splits[name] = ResidentSplit({key: values[:num_rows] for key, values in whole.items()})
    counts = {name: split.num_rows for name, split in splits.items()}
    return replace(dataset, info=replace(dataset.info, num_rows=counts), splits=splits)


def with_infinite_row(dataset: Dataset) -> Dataset:
    """Return the dataset with infinite numbers in one row of its train split, so that its loss is not finite."""
    columns = dict(next(dataset.splits["train"].own_rows(0, 1)))
    x = columns["x"].copy()
    x[17] = np.inf
    return replace(dataset, splits={**dataset.splits, "train": ResidentSplit({**columns, "x": x})})


def with_another_last_target(dataset: Dataset) -> Dataset:
    """Return the same rows, of which the last one to train on has the target of a row that differs from it."""
    columns = dict(next(dataset.splits["train"].own_rows(0, 1)))
    y = columns["y"].copy()
    y[-1] = next(one for one in y if np.any(one != y[-1]))
    return replace(dataset, splits={**dataset.splits, "train": ResidentSplit({**columns, "y": y})})


def in_float64(dataset: Dataset) -> Dataset | None:
    """Return the rows and means as float64 of few digits, to which a number can be added without rounding.

    None for texts and tokens.
    """
    if dataset.info.dtype not in ("uint8", "float32", "float64"):
        return None
    divisor = 255 if dataset.info.dtype == "uint8" else 1
    info = replace(dataset.info, mean=tuple(round(mean * 1024) / 1024 for mean in dataset.info.mean))
    return _mapped(replace(dataset, info=info), lambda x: np.round(x / divisor * 1024) / 1024)


def moved(dataset: Dataset, offset: float) -> Dataset:
    """Return the rows of float64 with a number added to all of them, and to the means."""
    found = _mapped(dataset, lambda x: x + offset)
    return replace(found, info=replace(found.info, mean=tuple(mean + offset for mean in found.info.mean)))


def _mapped(dataset: Dataset, change: Callable[[np.ndarray], np.ndarray]) -> Dataset:
    splits: dict[str, Split] = {}
    for name, split in dataset.splits.items():
        columns = next(split.own_rows(0, 1))
        splits[name] = ResidentSplit({**columns, "x": change(columns["x"].astype(np.float64))})
    return replace(dataset, info=replace(dataset.info, dtype="float64"), splits=splits)


def with_column(dataset: Dataset, role: str, values: Callable[[int], np.ndarray]) -> Dataset:
    """Return the rows with an optional column of ``Columns``, made for as many rows as each split has."""
    splits: dict[str, Split] = {}
    for name, split in dataset.splits.items():
        columns = next(split.own_rows(0, 1))
        splits[name] = ResidentSplit({**columns, role: values(split.num_rows)})
    info = replace(dataset.info, columns=tuple(dict.fromkeys((*dataset.info.columns, role))))
    return replace(dataset, info=info, splits=splits)


@dataclass(frozen=True)
class InMemory:
    """A reader of pieces that are in memory; a key is where one begins and ends."""

    columns: Columns

    def read(self, key: tuple[int, int]) -> Iterator[Columns]:
        """Yield a piece in two parts."""
        begin, end = key
        middle = (begin + end) // 2
        yield take(self.columns, slice(begin, middle))
        yield take(self.columns, slice(middle, end))


def streamed(columns: Columns, piece_rows: int = 13) -> StreamSplit:
    """Return rows as they come from a stream, in pieces of ``piece_rows`` rows."""
    count = len(columns["y"])
    keys = [(begin, min(begin + piece_rows, count)) for begin in range(0, count, piece_rows)]
    sizes = [end - begin for begin, end in keys]
    pieces = pieces_of(zip(keys, sizes, strict=True))
    return StreamSplit(InMemory(columns), pieces, RowFilter(), sizes, row_bytes=8, num_shuffle_rows=20)
