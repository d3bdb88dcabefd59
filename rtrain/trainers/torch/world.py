"""The workers of a torch run as one world: device, sums over ranks, and stopping together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from rtrain.errors import TrainingError
from rtrain.trainers.worker import Worker

CHECK_SECONDS = 0.2
STOPS = ("", "time limit", "interrupted", "preempted")
"""Reasons to stop early, by the number that ranks exchange."""


@dataclass(frozen=True)
class World:
    """This rank, all ranks, and the device this one trains on."""

    rank: int
    size: int
    device: torch.device

    @classmethod
    def of(cls, worker: Worker) -> World:
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

    def sum(self, values: Sequence[float] | torch.Tensor) -> torch.Tensor:
        """Return the sums of ``values`` over all ranks: (n,) float64, on the CPU."""
        total = torch.as_tensor(values, dtype=torch.float64, device=self.device)
        if self.size > 1:
            total = total.clone()
            dist.all_reduce(total)
        return total.cpu()

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the largest of each value over all ranks."""
        largest = torch.tensor(values, dtype=torch.float64, device=self.device)
        if self.size > 1:
            dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        return [float(value) for value in largest.cpu()]

    def copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Give every rank the values that rank 0 has, in place."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)


class StopSignal:
    """Lets all ranks leave at the same step, without an exchange at every step.

    Ranks exchange their wishes at agreed steps only; at each of them rank 0 proposes the next one, so that about
    ``CHECK_SECONDS`` pass in between.

    Args:
        worker: Knows what the driver wants, and the time.
        world: All ranks.
        max_seconds: Limit of the time, or None.
        seconds_before: What the run took before it was resumed.
    """

    def __init__(self, worker: Worker, world: World, max_seconds: float | None, seconds_before: float = 0.0) -> None:
        self._worker, self._world = worker, world
        self._max_seconds, self._seconds_before = max_seconds, seconds_before
        self._next = 0
        self._last: tuple[int, float] | None = None
        """Step and time of the exchange before."""

    @property
    def seconds(self) -> float:
        """Seconds that the run has taken, interruptions left out."""
        return self._seconds_before + self._worker.elapsed_seconds()

    def agreed(self, step: int) -> str:
        """Return why all ranks stop at ``step``, or an empty string; every rank calls it at every step."""
        if self._world.size == 1:
            return STOPS[self._wish()]
        if step < self._next:
            return ""
        wish, pause = self._world.max([self._wish(), self._pause(step) if self._world.rank == 0 else 0])
        self._next = step + int(pause)
        return STOPS[int(wish)]

    def _wish(self) -> int:
        reason = self._worker.stop_reason
        if reason:
            return STOPS.index(reason) if reason in STOPS else STOPS.index("interrupted")
        return 1 if self._max_seconds is not None and self.seconds >= self._max_seconds else 0

    def _pause(self, step: int) -> int:
        """Return how many steps may pass until the next exchange, by the speed since the last one."""
        now, last = time.monotonic(), self._last
        self._last = step, now
        if last is None:
            return 1
        seconds_per_step = (now - last[1]) / max(1, step - last[0])
        return max(1, min(1000, int(CHECK_SECONDS / max(seconds_per_step, 1e-6))))
