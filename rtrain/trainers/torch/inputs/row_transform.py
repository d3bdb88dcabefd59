"""What happens to a single row on its way to the model: augmentations, crops, what torchvision has."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtrain.config.targets.builder import Builder
from rtrain.config.targets.importing import raised_at
from rtrain.datasets.base import DatasetInfo
from rtrain.errors import ConfigError, TrainingError, first_line
from rtrain.trainers.loops.seeding import kept_random_numbers


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

    def failure(self, error: Exception) -> TrainingError:
        """Return what stands for an error of the transform in the process of training, which has not its traceback."""
        said = f"{self._where} failed: {type(error).__name__}: {first_line(error)}"
        failure = TrainingError(said, raised_at(error))
        failure.cause_type = type(error).__name__
        return failure

    def _row(self, row: Tensor, seed: int) -> Tensor:
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        for step in self._steps:
            row = step(row)
        if not isinstance(row, Tensor | np.ndarray):
            raise ConfigError(f"{self._where} returns a {type(row).__name__} for a row, not a tensor.")
        return torch.as_tensor(row)


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
