"""The ranks of a JAX run: devices, where arrays lie, and sums over ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rtrain.errors import TrainingError
from rtrain.trainers.worker import Worker

START_SECONDS = 300
"""Longest wait for the other processes."""


@dataclass(frozen=True)
class JaxRanks:
    """This rank, all ranks, and their devices."""

    rank: int
    size: int
    devices: tuple[Any, ...]
    """Of all ranks."""

    @cached_property
    def _mesh(self) -> Mesh:
        return Mesh(np.array(self.devices), ("rows",))

    @cached_property
    def rows(self) -> NamedSharding:
        """Where arrays lie whose rows are shared out among the devices."""
        return NamedSharding(self._mesh, PartitionSpec("rows"))

    @cached_property
    def everywhere(self) -> NamedSharding:
        """Where arrays lie that each device has whole."""
        return NamedSharding(self._mesh, PartitionSpec())

    def slots(self, num_global: int) -> int:
        """Return for how many rows of ``num_global`` this rank has places, the same on each rank."""
        own = len(self.devices) // self.size
        return -(-num_global // len(self.devices)) * own

    def gather_rows(self, values: np.ndarray) -> Any:
        """Return the array whose rows are those of all ranks, as many of each."""
        return jax.make_array_from_process_local_data(self.rows, values)

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all ranks, in double precision."""
        return [float(value) for value in self._all(values).sum(axis=0)]

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all ranks."""
        return [float(value) for value in self._all(values).max(axis=0)]

    def _all(self, values: Sequence[float]) -> np.ndarray:
        """Return the values of all ranks: (size, n) float64. JAX itself may know no doubles, so that bits travel."""
        own = np.asarray(values, np.float64)
        if self.size == 1:
            return own[None]
        gathered = np.asarray(multihost_utils.process_allgather(own.view(np.uint32)))
        return np.ascontiguousarray(gathered).view(np.float64).reshape(self.size, -1)


@contextmanager
def process_group(worker: Worker) -> Iterator[JaxRanks]:
    """Join all workers, for as long as the block runs.

    Raises:
        TrainingError: A device is missing, or JAX sees another number of processes than there are workers.
    """
    if worker.world_size > 1 and not jax.distributed.is_initialized():
        from rtrain.trainers.loops.rendezvous import worker_addresses

        jax.distributed.initialize(
            worker_addresses()[0],
            worker.world_size,
            worker.rank,
            initialization_timeout=START_SECONDS,
        )
    yield ranks_of(worker)
    if worker.world_size > 1 and not worker.stays:
        # Not after an error: it waits for the other ranks, which may wait for this one.
        jax.distributed.shutdown()


def ranks_of(worker: Worker) -> JaxRanks:
    """Return the ranks that this process has joined."""
    platform = "gpu" if worker.use_gpu else "cpu"
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        raise TrainingError(
            f"worker {worker.rank} needs a {platform}, but its JAX {jax.__version__} has none: {error}",
            "Install JAX for the accelerator on every node, or set use_gpu=false.",
        ) from error
    if jax.process_count() != worker.world_size or jax.process_index() != worker.rank:
        raise TrainingError(
            f"JAX sees {jax.process_count()} processes, but there are {worker.world_size} workers: each would train a "
            "separate model.",
            "JAX must not be used before the train loop: check the imports of the project.",
        )
    return JaxRanks(worker.rank, worker.world_size, tuple(devices[:1] if worker.in_process else devices))
