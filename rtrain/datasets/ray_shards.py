"""Streamed splits on a Ray cluster: read once for all workers. The one module here that imports Ray; import it late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray.data
import ray.train
from ray.data import ExecutionOptions

from rtrain.datasets.base import Batch, Columns, Dataset, Pass, ResidentSplit, Split, share_of, take_rows
from rtrain.datasets.mapped import MappedSplit
from rtrain.datasets.stream import StreamSplit

if TYPE_CHECKING:
    import numpy as np

NUM_BLOCKS = 64
"""Blocks that a split is cut into at least, so that workers get about the same number of rows."""
MAX_BLOCK_BYTES = 32 << 20


class StreamDataConfig(ray.train.DataConfig):
    """Shares each split among the workers, every row to exactly one: none is dropped to make the shares equal."""

    def configure(
        self,
        datasets: Mapping[str, ray.data.Dataset],
        world_size: int,
        worker_handles: Any,
        worker_node_ids: list[str] | None,
        **_: Any,
    ) -> list[dict[str, Any]]:
        """Return for each worker its iterators by split."""
        shards: list[dict[str, Any]] = [{} for _ in range(world_size)]
        for name, dataset in datasets.items():
            own = dataset.copy(dataset)
            own.context.execution_options = ExecutionOptions(preserve_order=False)
            split = own.streaming_split(world_size, equal=False, locality_hints=worker_node_ids)
            for shard, iterator in zip(shards, split, strict=True):
                shard[name] = iterator
        return shards


def ray_datasets(dataset: Dataset, seed: int) -> dict[str, ray.data.Dataset]:
    """Return what ``datasets=`` of a Ray trainer takes: a ray.data.Dataset for each split; on the driver.

    The cluster needs at least one CPU beyond those that the workers reserve, or reading never starts.
    """
    return {
        name: ray_dataset(split, seed if name == "train" else None)
        if isinstance(split, StreamSplit)
        else resident_ray_dataset(split)
        for name, split in dataset.splits.items()
    }


def resident_ray_dataset(split: Split) -> ray.data.Dataset:
    """Return the rows of a split in memory, or mapped there, as a ray.data.Dataset of its columns, in their order."""
    if isinstance(split, MappedSplit):
        return ray.data.range(split.num_rows).map_batches(_mapped_rows, fn_kwargs={"split": split})
    assert isinstance(split, ResidentSplit)
    columns = ray.put(dict(split.columns))
    return ray.data.range(split.num_rows).map_batches(_take_rows, fn_kwargs={"columns": columns})


def _mapped_rows(batch: Mapping[str, np.ndarray], split: MappedSplit) -> dict[str, np.ndarray]:
    return {"x": split.x(batch["id"]), "y": split.y[batch["id"]]}


def _take_rows(batch: Mapping[str, np.ndarray], columns: Any) -> dict[str, np.ndarray]:
    held = ray.get(columns) if isinstance(columns, ray.ObjectRef) else columns
    return {name: values[batch["id"]] for name, values in held.items()}


def ray_dataset(split: StreamSplit, seed: int | None) -> ray.data.Dataset:
    """Return the rows of ``split`` as a ray.data.Dataset with the columns ``x`` and ``y``.

    Args:
        split: What to read.
        seed: Orders the pieces anew in each epoch; None leaves them in order.
    """
    numbers = ray.data.range(len(split.pieces), override_num_blocks=len(split.pieces))
    if seed is not None:
        order = ray.data.RandomSeedConfig(seed=seed, reseed_after_execution=True)
        numbers = numbers.randomize_block_order(seed=order)
    dataset = numbers.map_batches(_read_pieces, batch_size=1, fn_kwargs={"split": split})
    block_bytes = min(MAX_BLOCK_BYTES, max(1, split.num_rows * split.row_bytes // NUM_BLOCKS))
    dataset.context.target_max_block_size = block_bytes
    return dataset


def _read_pieces(batch: Mapping[str, np.ndarray], split: StreamSplit) -> Iterator[dict[str, np.ndarray]]:
    for columns in split.chunks(batch["id"].tolist()):
        yield dict(columns)


def with_shards(dataset: Dataset, get_shard: Callable[[str], Any] = ray.train.get_dataset_shard) -> Dataset:
    """Return ``dataset`` with this worker's shards in place of its streamed splits; on a worker of Ray Train."""
    splits = {
        name: ShardSplit(split, get_shard(name)) if isinstance(split, StreamSplit) else split
        for name, split in dataset.splits.items()
    }
    return replace(dataset, splits=splits)


class ShardSplit(Split):
    """One worker's share of a streamed split. All workers have to begin each pass, and none may begin one more.

    Workers get about the same number of rows, not exactly, and not the same ones in each epoch or after a resume.
    """

    def __init__(self, split: StreamSplit, shard: Any) -> None:
        self.num_rows = split.num_rows
        self._num_shuffle_rows = split.num_shuffle_rows
        self._shard = shard

    def batches(self, one: Pass) -> Iterator[Batch]:
        """Yield this worker's batches; ``num_global`` is -1, and other workers may have more or fewer batches."""
        low, high = share_of(one.global_batch_size, one.rank, one.world_size)
        options: dict[str, Any] = {"batch_size": max(1, high - low), "batch_format": "numpy", "prefetch_batches": 2}
        if one.shuffle:
            options["local_shuffle_buffer_size"] = max(2, self._num_shuffle_rows // one.world_size)
            options["local_shuffle_seed"] = (one.seed + one.epoch * 1_000_003 + one.rank) % 2**32
        for number, columns in enumerate(self._shard.iter_batches(**options)):
            if number >= one.skip_steps:
                yield take_rows(columns, slice(None), -1)

    def own_rows(self, rank: int, world_size: int) -> Iterator[Columns]:
        """Yield the rows that Ray Data gives this worker; in each pass possibly others."""
        yield from self._shard.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=2)
