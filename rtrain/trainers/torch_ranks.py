"""The workers of a run whose processes torch has joined: device, sums over ranks, and random numbers of a step."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from rtrain.errors import TrainingError
from rtrain.trainers.worker import Worker


@dataclass(frozen=True)
class TorchRanks:
    """This rank, all ranks, and the device this one trains on."""

    rank: int
    size: int
    device: torch.device

    @classmethod
    def of(cls, worker: Worker) -> TorchRanks:
        """Take the place that Ray gave this worker; alone, no process group is needed.

        Raises:
            TrainingError: The worker has a GPU that its torch can't use.
        """
        device = torch.device("cpu")
        if worker.use_gpu and not torch.cuda.is_available():
            raise TrainingError(
                f"worker {worker.rank} has a GPU, but its torch {torch.__version__} can't use it.",
                "Install torch with CUDA on every node, or set use_gpu=false.",
            )
        if worker.use_gpu and worker.in_process:
            device = torch.device("cuda", torch.cuda.current_device())
        elif worker.use_gpu:
            from ray.train.torch import get_device

            device = get_device()
        if device.type == "cuda":
            torch.cuda.set_device(device)
        return cls(worker.rank, worker.world_size, device)

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all ranks."""
        return self._reduce(values, dist.ReduceOp.SUM)

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all ranks."""
        return self._reduce(values, dist.ReduceOp.MAX)

    def _reduce(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> list[float]:
        reduced = torch.tensor(values, dtype=torch.float64, device=self.device)
        if self.size > 1:
            dist.all_reduce(reduced, op=operation)
        return [float(value) for value in reduced.cpu()]

    def seed_step(self, seed: int, step: int) -> None:
        """Make the random numbers of a step depend on nothing but ``seed``, the rank and ``step``.

        A resumed run thus draws the same dropout as one that was never interrupted.
        """
        mixed = hashlib.blake2b(f"{seed}/{self.rank}/{step}".encode(), digest_size=8).digest()
        torch.manual_seed(int.from_bytes(mixed, "big"))
