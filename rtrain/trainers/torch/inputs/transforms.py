"""What happens to single rows on their way to the model: augmentations, crops, what torchvision has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtrain.config.targets.builder import Builder
from rtrain.config.targets.importing import raised_at
from rtrain.datasets.base import DatasetInfo, EpochPlan, ResidentSplit, Split, share_of
from rtrain.datasets.splitting.row_hash import random_numbers
from rtrain.errors import ConfigError
from rtrain.trainers.loops.seeding import kept_random_numbers
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.inputs.loader import Step, TensorLoader
from rtrain.trainers.torch.inputs.standardize import as_tensor
from rtrain.trainers.torch.ranks import TorchRanks


class RowTransform:
    """Callables that each get one row, one after the other, with random numbers that belong to the row.

    Args:
        nodes: Modules and other classes are built with the keys of their node; a function is called with the row and
            the keys of its node.
        where: Their key in the config.
        builder: Builds what the config names.

    Raises:
        ConfigError: A target does not exist, or what it makes can't be called.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]], where: str, builder: Builder) -> None:
        self._where = where
        self._steps = [_step(node, f"{where}[{place}]", builder) for place, node in enumerate(nodes)]

    def __call__(self, x: Tensor, seeds: np.ndarray | None = None) -> Tensor:
        """Return the transformed rows.

        Args:
            x: (rows, ...) on the CPU; uint8 becomes float32 from 0 to 1 before.
            seeds: (rows,) uint32, of each row's random numbers; None: the same ones for every row.

        Raises:
            ConfigError: A result is not a tensor or array, or rows differ in shape; names the key.
        """
        rows = x.float() / 255 if x.dtype == torch.uint8 else x
        with torch.no_grad(), kept_random_numbers(), torch.random.fork_rng(devices=[]):
            found = [self._row(row, 0 if seeds is None else int(seeds[place])) for place, row in enumerate(rows)]
        try:
            return torch.stack(found) if found else rows
        except RuntimeError as error:
            raise ConfigError(f"{self._where}: its rows have different shapes: {error}") from error

    def shape(self, info: DatasetInfo) -> tuple[int, ...]:
        """Return the shape of a row that comes out."""
        kind = torch.from_numpy(np.zeros(0, info.dtype)).dtype
        return tuple(self(torch.zeros((1, *info.input_shape), dtype=kind)).shape[1:])

    def _row(self, row: Tensor, seed: int) -> Tensor:
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        for step in self._steps:
            row = step(row)
        if not isinstance(row, Tensor | np.ndarray):
            raise ConfigError(f"{self._where} returns a {type(row).__name__} for a row, not a tensor.")
        return torch.as_tensor(row)


class TransformedLoader(TensorLoader):
    """One split whose rows are transformed again in every pass.

    Args:
        split: The rows.
        info: The dataset, with rows as they are.
        ranks: Those with their own rows.
        conf: How images lie in memory.
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
        self._nothing = torch.zeros((0, *transform.shape(info)))

    def _hold(self, split: ResidentSplit) -> None:
        """Leave the rows where they are: they have to be transformed before they are put on the device."""

    def steps(self, one: EpochPlan) -> Iterator[Step]:
        """Yield the steps of one pass; a rank without rows gets empty tensors while another one still has some."""
        start = one.skip_rows
        for batch in map(self.as_described, self._split.batches(one)):
            own = slice(*(start + border for border in share_of(batch.num_global, one.rank, one.world_size)))
            seeds = _seeds((one.seed, one.epoch), np.arange(own.start, own.stop)) if self._is_random else None
            start += batch.num_global
            x = self._transform(as_tensor(batch.x), seeds)
            yield self.step(batch, x if len(batch.y) else self._nothing)


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
            builder.check_node(node, where, num_args=0 if _is_class(node, where, builder) else 1)
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


def _step(node: Mapping[str, Any], where: str, builder: Builder) -> Callable[[Any], Any]:
    step: Callable[[Any], Any] = builder.build(
        node if _is_class(node, where, builder) else {**node, "_partial_": True}, where
    )
    if not callable(step):
        raise ConfigError(f"{where}: a {type(step).__name__} can't be called with a row.")
    return step


def _is_class(node: Mapping[str, Any], where: str, builder: Builder) -> bool:
    target = node.get("_target_")
    if not isinstance(target, str):
        raise ConfigError(
            f"{where} has no _target_.", "A transform must be {_target_: module.name} with its arguments."
        )
    return isinstance(builder.locate(target, f"{where}._target_"), type)
