"""What a train loop finds under trainer=jax: what Ray's ``JaxTrainer`` sets up, on CPUs too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rtrain.trainers.loops.custom.world import LoopWorld
from rtrain.trainers.worker import Worker


class World(LoopWorld):
    """``jax.distributed``, initialized."""

    framework = "jax"

    @contextmanager
    def entered(self, worker: Worker) -> Iterator[None]:
        """Make one world of all workers."""
        from rtrain.trainers.jax.ranks import joined

        with joined(worker):
            yield
