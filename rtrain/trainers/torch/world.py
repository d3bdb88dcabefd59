"""What a train loop finds under trainer=torch, and under those built on it: what Ray's ``TorchTrainer`` sets up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rtrain.trainers.loops.custom.world import LoopWorld, TrainingFunction
from rtrain.trainers.worker import Worker


class World(LoopWorld):
    """``torch.distributed``, joined by Ray."""

    framework = "torch"

    @contextmanager
    def entered(self, worker: Worker) -> Iterator[None]:
        """Set torch's threads and seed; afterwards torch is as it was before, and has no process group."""
        import ray.train.torch  # noqa: F401 - Ray's own strategies for Lightning count on it
        import torch

        from rtrain.trainers.torch.process_settings import training_settings

        with training_settings(worker, deterministic=None):
            try:
                yield
            finally:
                if worker.in_process and torch.distributed.is_initialized():
                    torch.distributed.destroy_process_group()

    def seed(self, number: int) -> None:
        """Seed torch."""
        import torch

        torch.manual_seed(number >> 1)


def _is_joined(*_: Any, **__: Any) -> bool:
    return bool(sys.modules["torch.distributed"].is_initialized())


WATCHED = (
    TrainingFunction(
        "torch.optim.optimizer", "Optimizer.__init__", "torch", _is_joined, "torch.distributed", by_itself=True
    ),
)
