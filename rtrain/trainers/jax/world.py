"""What a train loop finds under trainer=jax: what Ray's ``JaxTrainer`` sets up, on CPUs too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction
from rtrain.trainers.worker import Worker


class World(LoopWorld):
    """``jax.distributed``, initialized."""

    framework = "jax"

    @contextmanager
    def entered(self, worker: Worker) -> Iterator[None]:
        """Make one world of all workers."""
        from rtrain.trainers.jax.ranks import process_group

        with process_group(worker):
            yield


def _is_joined(*_: Any, **__: Any) -> bool:
    return bool(sys.modules["jax"].process_count() > 1)


WATCHED = (
    TrainingFunction(
        "optax._src.update", "apply_updates", "jax", _is_joined, "jax.distributed.initialize", by_itself=True
    ),
)
