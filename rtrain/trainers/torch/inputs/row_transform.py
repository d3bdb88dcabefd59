"""What happens to a single row on its way to the model: augmentations, crops, what torchvision has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from rtrain.config.targets.builder import Builder
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError
from rtrain.trainers.loops.seeding import kept_random_numbers
from rtrain.trainers.torch.inputs.standardize import as_tensor


class RowTransform:
    """Callables that each get one row, one after the other, with random numbers that belong to the row.

    Without any, rows stay as they are.

    Args:
        nodes: Modules and other classes are built with the keys of their node; a function is called with the row and
            the keys of its node.
        where: Their key in the config.
        builder: Builds what the config names.

    Raises:
        ConfigError: A target does not exist, or what it makes can't be called.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]], where: str, builder: Builder) -> None:
        self.where = where
        self._steps = [_step(node, f"{where}[{place}]", builder) for place, node in enumerate(nodes)]

    def __call__(self, x: Iterable[Tensor | np.ndarray], seeds: np.ndarray) -> Tensor:
        """Return the transformed rows.

        Args:
            x: Rows on the CPU, taken one by one; uint8 becomes float32 from 0 to 1 before, if there are callables.
            seeds: (rows,) uint32, of each row's random numbers.

        Raises:
            ConfigError: A result is not a tensor or array, or rows differ in shape or type; names the key.
        """
        found = torch.zeros(0)
        with torch.no_grad(), kept_random_numbers(), torch.random.fork_rng(devices=[]):
            for place, (one, seed) in enumerate(zip(x, seeds.tolist(), strict=True)):
                row = self._row(one, seed)
                found = found if place else _unfilled(row, len(seeds))
                if (row.shape, row.dtype) != (found.shape[1:], found.dtype):
                    raise ConfigError(f"{self.where}: its rows differ: {_told(found[0])}, and {_told(row)}.")
                found[place].copy_(row)  # while the processor has it at hand
        return found

    def shape(self, info: DatasetInfo) -> tuple[int, ...]:
        """Return the shape of a row that comes out."""
        kind = torch.from_numpy(np.zeros(0, info.dtype)).dtype
        return tuple(self(torch.zeros((1, *info.input_shape), dtype=kind), np.zeros(1, np.uint32)).shape[1:])

    def _row(self, row: Tensor | np.ndarray, seed: int) -> Tensor:
        row = row if isinstance(row, Tensor) else as_tensor(row)
        if not self._steps:
            return row
        row = row.float().div_(255) if row.dtype == torch.uint8 else row
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        for step in self._steps:
            row = step(row)
        if not isinstance(row, Tensor | np.ndarray):
            raise ConfigError(f"{self.where} returns a {type(row).__name__} for a row, not a tensor.")
        return torch.as_tensor(row)


def _unfilled(row: Tensor, count: int) -> Tensor:
    """Return memory for so many rows; in a process of a loader it is shared with the one that takes them."""
    shape = (count, *row.shape)
    if get_worker_info() is None:
        return torch.empty(shape, dtype=row.dtype)
    memory: Any = torch.UntypedStorage
    return torch.empty(0, dtype=row.dtype).set_(memory._new_shared(count * row.nbytes)).view(shape)


def _told(row: Tensor) -> str:
    return f"{str(row.dtype).removeprefix('torch.')} of shape {tuple(row.shape)}"


def _step(node: Mapping[str, Any], where: str, builder: Builder) -> Callable[[Any], Any]:
    step: Callable[[Any], Any] = builder.build(
        node if is_class(node, where, builder) else {**node, "_partial_": True}, where
    )
    if not callable(step):
        raise ConfigError(f"{where}: a {type(step).__name__} can't be called with a row.")
    return step


def is_class(node: Mapping[str, Any], where: str, builder: Builder) -> bool:
    target = node.get("_target_")
    if not isinstance(target, str):
        raise ConfigError(
            f"{where} has no _target_.", "A transform must be {_target_: module.name} with its arguments."
        )
    return isinstance(builder.locate(target, f"{where}._target_"), type)
