"""Splits as Ray Datasets, for custom train loops. The only module here that imports Ray; import it late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import ray.data

from rtrain.datasets.base import Columns, Dataset, ResidentSplit, Split
from rtrain.datasets.on_disk.mapped_split import MappedSplit
from rtrain.datasets.streamed import StreamSplit
from rtrain.datasets.whole.splits import FileTable, HeldTable


def ray_datasets(dataset: Dataset, seed: int) -> dict[str, ray.data.Dataset]:
    """Return what ``datasets=`` of a Ray trainer takes: a ray.data.Dataset for each split; on the driver.

    The cluster needs at least one CPU beyond those that the workers reserve, or reading never starts.
    """
    return {name: dataset_of(split, seed if name == "train" else None) for name, split in dataset.splits.items()}


def dataset_of(split: Split, seed: int | None = None) -> ray.data.Dataset:
    """Return the rows of a split, in the order of the data; if they are streamed and there is a seed, in its order."""
    if isinstance(split, HeldTable):
        return ray.data.from_arrow(split.table)
    if isinstance(split, FileTable):
        return file_ray_dataset(split)
    return ray_dataset(split, seed) if isinstance(split, StreamSplit) else resident_ray_dataset(split)


def resident_ray_dataset(split: Split) -> ray.data.Dataset:
    """Return the rows of a split in memory, or mapped there, as a ray.data.Dataset of its columns, in their order."""
    if isinstance(split, MappedSplit):
        return ray.data.range(split.num_rows).map_batches(_mapped_rows, fn_kwargs={"split": split})
    assert isinstance(split, ResidentSplit)
    columns = ray.put(dict(split.columns))
    return ray.data.range(split.num_rows).map_batches(_take_rows, fn_kwargs={"columns": columns})


def file_ray_dataset(split: FileTable) -> ray.data.Dataset:
    """Return the rows of a table in files as a ray.data.Dataset of its columns, in their order."""
    numbers = ray.data.range(len(split.pieces), override_num_blocks=len(split.pieces))
    return numbers.map_batches(_read_tables, batch_size=1, fn_kwargs={"split": split})


def _read_tables(batch: Mapping[str, np.ndarray], split: FileTable) -> Iterator[pa.Table]:
    for number in batch["id"].tolist():
        yield from split.read(split.pieces[number])


def _mapped_rows(batch: Mapping[str, np.ndarray], split: MappedSplit) -> Columns:
    return split.columns(batch["id"])


def _take_rows(batch: Mapping[str, np.ndarray], columns: Any) -> dict[str, np.ndarray]:
    held = ray.get(columns) if isinstance(columns, ray.ObjectRef) else columns
    return {name: values[batch["id"]] for name, values in held.items()}


def ray_dataset(split: StreamSplit, seed: int | None) -> ray.data.Dataset:
    """Return the rows of ``split`` as a ray.data.Dataset with the columns ``x`` and ``y``.

    Args:
        split: The split to read.
        seed: Shuffles the pieces again in each epoch; None leaves them in order.
    """
    numbers = ray.data.range(len(split.pieces), override_num_blocks=len(split.pieces))
    if seed is not None:
        order = ray.data.RandomSeedConfig(seed=seed, reseed_after_execution=True)
        numbers = numbers.randomize_block_order(seed=order)
    return numbers.map_batches(_read_pieces, batch_size=1, fn_kwargs={"split": split})


def _read_pieces(batch: Mapping[str, np.ndarray], split: StreamSplit) -> Iterator[dict[str, np.ndarray]]:
    for columns in split.chunks(batch["id"].tolist()):
        yield dict(columns)
