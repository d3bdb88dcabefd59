"""Splits whose rows are transformed on their way to the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import starmap

import numpy as np
import torch
from torch import Tensor

from rtrain.config.targets.builder import Builder
from rtrain.config.targets.importing import raised_at
from rtrain.datasets.base import Batch, DatasetInfo, EpochPlan, ResidentSplit, Split, share_of
from rtrain.datasets.splitting.row_hash import random_numbers
from rtrain.errors import ConfigError
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.inputs.loader import Step, TensorLoader
from rtrain.trainers.torch.inputs.processes import TransformProcesses, Work
from rtrain.trainers.torch.inputs.row_transform import RowTransform, is_class
from rtrain.trainers.torch.inputs.standardize import as_tensor
from rtrain.trainers.torch.ranks import TorchRanks


class TransformedLoader(TensorLoader):
    """One split whose rows are transformed again in every pass.

    Args:
        split: The rows.
        info: The dataset, with rows as they are.
        ranks: Those with their own rows.
        conf: How images lie in memory, and what transforms rows.
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
        self._transform, self._is_random, self._conf = transform, is_random, conf.loader
        self._nothing = torch.zeros((0, *transform.shape(info)))

    def _hold(self, split: ResidentSplit) -> None:
        """Leave the rows where they are: they have to be transformed before they are put on the device."""

    def steps(self, plan: EpochPlan) -> Iterator[Step]:
        """Yield the steps of one pass; a rank without rows gets empty tensors while another one still has some."""
        batches: deque[Batch] = deque()
        for x in self._transformed(self._work(plan, batches)):
            batch = batches.popleft()
            yield self.step(batch, x if len(batch.y) else self._nothing)

    def _work(self, plan: EpochPlan, batches: deque[Batch]) -> Iterator[Work]:
        """Yield the rows of each batch, with their seeds, and add the batch to ``batches``."""
        start = plan.skip_rows
        for batch in map(self.as_described, self._split.batches(plan)):
            own = slice(*(start + border for border in share_of(batch.num_global, plan.rank, plan.world_size)))
            seeds = _seeds((plan.seed, plan.epoch), np.arange(own.start, own.stop)) if self._is_random else None
            start += batch.num_global
            batches.append(batch)
            yield as_tensor(batch.x), seeds

    def _transformed(self, work: Iterator[Work]) -> Iterator[Tensor]:
        if self._conf.num_workers == 0:
            return starmap(self._transform, work)
        return self._processes(work)

    @cached_property
    def _processes(self) -> TransformProcesses:
        """What transforms the rows of all passes."""
        return TransformProcesses(self._transform, self._conf.num_workers, self._conf.prefetch)


def open_loader(
    split: Split, info: DatasetInfo, ranks: TorchRanks, conf: Conf, builder: Builder, *, training: bool
) -> TensorLoader:
    """Return the rows of a split as a model takes them, in training or to be evaluated."""
    transform = transform_of(conf, training, builder)
    if transform is None:
        return TensorLoader(split, info, ranks, conf.channels_last)
    return TransformedLoader(split, info, ranks, conf, transform, is_random=training)


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
    return transformed_info(conf, info, builder)


def _try(transform: RowTransform, where: str, info: DatasetInfo) -> None:
    try:
        shape = transform.shape(info)
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


def _seeds(key: tuple[int, ...], places: np.ndarray) -> np.ndarray:
    """Return (rows,) uint32 that follow from ``key`` and each row's place in the pass."""
    return (random_numbers(key, places.astype(np.uint64)) * 2.0**32).astype(np.uint32)
