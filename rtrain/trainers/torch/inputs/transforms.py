"""Splits whose rows are read or transformed one by one on their way to the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import starmap
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtrain.config.targets.builder import Builder
from rtrain.config.targets.importing import raised_at
from rtrain.config.value_types.auto import AUTO
from rtrain.datasets.base import Batch, DatasetInfo, EpochPlan, IndexedSplit, ResidentSplit, Split, share_of, take_rows
from rtrain.datasets.images.conf import ORIGINAL
from rtrain.datasets.splitting.row_hash import random_numbers
from rtrain.errors import ConfigError
from rtrain.runs.facts import num_cores
from rtrain.trainers.torch.config import Conf, LoaderConf
from rtrain.trainers.torch.inputs.loader import Step, TensorLoader
from rtrain.trainers.torch.inputs.row_processes import RowProcesses, Work
from rtrain.trainers.torch.inputs.row_transform import RowTransform, is_class
from rtrain.trainers.torch.inputs.standardize import as_tensor
from rtrain.trainers.torch.ranks import TorchRanks

MOST_PROCESSES = 8
"""Of those that prepare rows for one rank, unless the config says how many."""


class RowwiseLoader(TensorLoader):
    """One split whose rows are prepared one by one in every pass: read if they are not in memory, and transformed.

    Args:
        split: The rows.
        info: The dataset, with rows as they are.
        ranks: Those with their own rows.
        conf: How images lie in memory, and which processes prepare rows.
        transform: What happens to each row.
        is_random: Each row gets its own random numbers, by ``EpochPlan.seed``, epoch and its place in the epoch.
            Otherwise they are the same for all rows and passes.
    """

    def __init__(
        self,
        split: Split,
        info: DatasetInfo,
        ranks: TorchRanks,
        conf: Conf,
        transform: RowTransform,
        *,
        is_random: bool,
    ) -> None:
        super().__init__(split, info, ranks, conf.channels_last)
        self._transform, self._is_random = transform, is_random
        self._num_processes, self._prefetch = num_processes(conf.loader, ranks), conf.loader.prefetch
        self._nothing = torch.zeros((0, *transform.shape(info)))

    def _hold(self, split: ResidentSplit) -> None:
        """Leave the rows where they are: they have to be transformed before they are put on the device."""
        self.as_described(take_rows(split.columns, slice(0), 0))

    def steps(self, plan: EpochPlan) -> Iterator[Step]:
        """Yield the steps of one pass; a rank without rows gets empty tensors while another one still has some."""
        batches: deque[Batch] = deque()
        for x in self._prepared(self._work(plan, batches)):
            batch = batches.popleft()
            yield self.step(batch, x if len(batch.y) else self._nothing)

    def _work(self, plan: EpochPlan, batches: deque[Batch]) -> Iterator[Work]:
        """Yield what the rows of each batch are made of, with their seeds, and add the batch to ``batches``."""
        start = plan.skip_rows
        for x, batch in self._read(plan):
            own = slice(*(start + border for border in share_of(batch.num_global, plan.rank, plan.world_size)))
            places = np.arange(own.start, own.stop)
            seeds = _seeds((plan.seed, plan.epoch), places) if self._is_random else np.zeros(len(places), np.uint32)
            start += batch.num_global
            batches.append(batch)
            yield x, seeds

    def _read(self, plan: EpochPlan) -> Iterator[tuple[Any, Batch]]:
        """Yield each batch, and its rows one by one; or their numbers, where other processes can read them."""
        split = self._split
        if not isinstance(split, IndexedSplit):
            for batch in map(self.as_described, split.batches(plan)):
                yield as_tensor(batch.x), batch
        elif self._num_processes:
            for rows, num_global in split.indices(plan):
                yield rows, split.batch(rows, rows, num_global)
        else:
            for rows, images, num_global in split.steps(plan):
                yield images, split.batch(rows, rows, num_global)

    def _prepared(self, work: Iterator[Work]) -> Iterator[Tensor]:
        return self._processes(work) if self._num_processes else starmap(self._transform, work)

    @cached_property
    def _processes(self) -> RowProcesses:
        """What prepares the rows of all passes."""
        prepare = partial(_prepare, self._transform, self._split if isinstance(self._split, IndexedSplit) else None)
        return RowProcesses(prepare, self._transform.where, self._num_processes, self._prefetch)


def _prepare(transform: RowTransform, split: IndexedSplit | None, x: Any, seeds: np.ndarray) -> Tensor:
    """Return transformed rows; of a ``split``, ``x`` has their numbers."""
    return transform(x if split is None else split.inputs(x), seeds)


def num_processes(conf: LoaderConf, ranks: TorchRanks) -> int:
    """Return how many processes prepare rows for this one.

    By default as many as leave a core to each rank that trains on a GPU, as if all were on this machine. On CPUs there
    are none: training takes all cores.
    """
    if conf.num_workers != AUTO:
        return int(conf.num_workers)
    if ranks.device.type == "cpu":
        return 0
    return max(1, min(MOST_PROCESSES, num_cores() // ranks.size - 1))


def open_loader(
    split: Split, info: DatasetInfo, ranks: TorchRanks, conf: Conf, builder: Builder, *, training: bool
) -> TensorLoader:
    """Return the rows of a split as a model takes them, in training or to be evaluated."""
    transform = transform_of(conf, training, builder)
    is_read = isinstance(split, IndexedSplit) and not isinstance(split, ResidentSplit)
    if transform is None and not (is_read and num_processes(conf.loader, ranks)):
        return TensorLoader(split, info, ranks, conf.channels_last)
    if transform is None:
        transform = RowTransform((), "trainer.transform", builder)
    return RowwiseLoader(split, info, ranks, conf, transform, is_random=training)


def transform_of(conf: Conf, training: bool, builder: Builder) -> RowTransform | None:
    """Return what the config says for rows of training, or for those to evaluate and predict; None if nothing."""
    key = "transform" if training else "eval_transform"
    nodes = getattr(conf, key)
    return RowTransform(nodes, f"trainer.{key}", builder) if nodes else None


def transformed_info(conf: Conf, info: DatasetInfo, builder: Builder) -> DatasetInfo:
    """Return the dataset as the model sees it: its rows have the shape of those that are evaluated."""
    transform = transform_of(conf, False, builder)
    return info if transform is None else replace(info, input_shape=transform.shape(info))


def check_transforms(conf: Conf, info: DatasetInfo, builder: Builder) -> DatasetInfo:
    """Check targets, try them on a row of zeros, and return the dataset as the model sees it.

    Raises:
        ConfigError: Something can't work; names the key.
    """
    for key in ("transform", "eval_transform"):
        for place, node in enumerate(getattr(conf, key)):
            where = f"trainer.{key}[{place}]"
            builder.check_node(node, where, num_args=0 if is_class(node, where, builder) else 1)
        transform = transform_of(conf, key == "transform", builder)
        if transform is not None:
            _try(transform, f"trainer.{key}", info)
        elif info.original_sizes:
            raise ConfigError(
                f"dataset.image_size={ORIGINAL} needs trainer.{key}: images of different sizes make no batch.",
                "Let it bring all images to one size, or set that here: 'dataset.image_size=[224,224]'",
            )
    return transformed_info(conf, info, builder)


def _try(transform: RowTransform, where: str, info: DatasetInfo) -> None:
    try:
        shape = transform.shape(info)
        if info.original_sizes:
            _check_one_size(transform, where, info, shape)
    except ConfigError:
        raise
    except Exception as error:
        message = f"{where} failed with a row of zeros of shape {info.input_shape}: {type(error).__name__}: {error}"
        raise ConfigError(message, raised_at(error)) from error
    if info.mean and shape[:1] != info.input_shape[:1]:
        raise ConfigError(
            f"{where} returns rows of shape {shape}, but {info.name} is standardized by the means and deviations of "
            f"{info.input_shape[0]} channels or features.",
            "Turn that off: dataset.normalize=false",
        )


def _check_one_size(transform: RowTransform, where: str, info: DatasetInfo, shape: tuple[int, ...]) -> None:
    """Try an image that is larger in both directions than the one that ``shape`` came of: its row must be as large."""
    channels, height, width = info.input_shape
    larger = (channels, height + height // 2 + 1, 2 * width + 1)
    found = transform.shape(replace(info, input_shape=larger))
    if shape != found:
        sizes = [" x ".join(map(str, one[1:])) for one in (info.input_shape, larger, shape, found)]
        raise ConfigError(
            f"{where} makes {sizes[2]} of an image of {sizes[0]}, but {sizes[3]} of one of {sizes[1]}.",
            "Let it bring all images to one size, or set dataset.image_size=[height,width]",
        )


def _seeds(key: tuple[int, ...], places: np.ndarray) -> np.ndarray:
    """Return (rows,) uint32 that follow from ``key`` and each row's place in the pass."""
    return (random_numbers(key, places.astype(np.uint64)) * 2.0**32).astype(np.uint32)
