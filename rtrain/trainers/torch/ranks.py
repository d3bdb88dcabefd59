"""The workers of a run whose processes torch has joined: device, sums over ranks, and random numbers of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
    group: Any = None
    """Process group of these ranks; None for that of all."""
    counts: bool = True
    """This rank speaks for its rows; false where another one has the same rows and does."""

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

    def sum(self, values: Sequence[float] | torch.Tensor) -> list[float]:
        """Return the sum of each value over all ranks, in double precision."""
        return self._reduce(values, dist.ReduceOp.SUM)

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all ranks."""
        return self._reduce(values, dist.ReduceOp.MAX)

    def _reduce(self, values: Sequence[float] | torch.Tensor, operation: dist.ReduceOp.RedOpType) -> list[float]:
        if self.size == 1:
            return [float(value) for value in (values.tolist() if isinstance(values, torch.Tensor) else values)]
        # What is reduced is overwritten.
        reduced = torch.as_tensor(values, dtype=torch.float64, device=self.device).clone()
        dist.all_reduce(reduced, op=operation, group=self.group)
        return [float(value) for value in reduced.tolist()]

    def copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Give every rank the values that rank 0 has, in place."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def seed(self, number: int) -> None:
        """Make torch's random numbers depend on nothing but ``number``, of which it looks at the low 32 bits only."""
        # torch.manual_seed asks every kind of device, which takes longer than a small step.
        torch.default_generator.manual_seed(number)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(number)
