"""The ranks of a TensorFlow run: sums over them, inside and outside of graphs.

Keras 3 doesn't train under MultiWorkerMirroredStrategy (keras issue 20585), whose variables it can't read. It doesn't
have to: the strategy is used here only to connect the processes. Gradients are added up by TensorFlow's own collective
operation, which works on plain tensors; every rank then takes the same step with plain variables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import tensorflow as tf

from rtrain.errors import TrainingError
from rtrain.trainers.worker import Worker

GROUP = 1


@dataclass(frozen=True)
class TensorflowRanks:
    """This rank and all ranks."""

    rank: int
    size: int
    hint: str = "ring"
    """Way of exchange: ``nccl`` between GPUs."""
    _keys: Iterator[int] = field(default_factory=lambda: count(1))
    """Numbers of the places in graphs where ranks meet: all ranks build the same graphs in the same order."""
    _functions: dict[tuple[str, int], Callable[..., Any]] = field(default_factory=dict)

    def reduce(self, tensor: Any, operation: str = "Add") -> Any:
        """Return the sum (or largest) of ``tensor`` over all ranks; inside of a graph that all of them run alike."""
        if self.size == 1:
            return tensor
        return tf.raw_ops.CollectiveReduceV2(
            input=tensor,
            group_size=self.size,
            group_key=GROUP,
            instance_key=next(self._keys),
            ordering_token=[],
            merge_op=operation,
            final_op="Id",
            communication_hint=self.hint,
        )

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all ranks, in double precision."""
        return self._reduced(values, "Add")

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all ranks."""
        return self._reduced(values, "Max")

    def _reduced(self, values: Sequence[float], operation: str) -> list[float]:
        own = np.asarray(values, np.float64)
        if self.size == 1:
            return [float(value) for value in own]
        place = operation, len(own)
        if place not in self._functions:
            self._functions[place] = tf.function(lambda tensor: self.reduce(tensor, operation))
        return [float(value) for value in self._functions[place](tf.constant(own)).numpy()]


@contextmanager
def process_group(worker: Worker) -> Iterator[TensorflowRanks]:
    """Join all workers.

    Raises:
        TrainingError: There is no GPU where there should be one, or TensorFlow sees another number of workers.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if worker.use_gpu and not gpus:
        raise TrainingError(
            f"worker {worker.rank} needs a GPU, but its TensorFlow {tf.__version__} sees none.",
            "Install TensorFlow with CUDA on every node, or set use_gpu=false.",
        )
    if gpus and not worker.use_gpu:
        tf.config.set_visible_devices([], "GPU")
    if worker.world_size > 1:
        from rtrain.trainers.loops.rendezvous import worker_addresses

        connect(worker_addresses(), worker.rank)
    yield TensorflowRanks(worker.rank, worker.world_size, "nccl" if worker.use_gpu else "ring")


def connect(addresses: Sequence[str], rank: int) -> None:
    """Connect this process with the others; once, before TensorFlow has computed anything.

    Raises:
        TrainingError: TensorFlow sees another number of workers.
    """
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": list(addresses)}, "task": {"type": "worker", "index": rank}}
    )
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    finally:
        del os.environ["TF_CONFIG"]
    if strategy.num_replicas_in_sync != len(addresses):
        raise TrainingError(
            f"TensorFlow sees {strategy.num_replicas_in_sync} workers instead of {len(addresses)}.",
            "Give each worker one GPU, or none.",
        )
