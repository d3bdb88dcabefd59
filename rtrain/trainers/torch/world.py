"""The workers of a torch run as one world: device, sums over ranks, and stopping together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

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
        """Take the place that Ray gave this worker; alone, no process group is needed."""
        device = torch.device("cpu")
        if worker.use_gpu and worker.in_process:
            device = torch.device("cuda")
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
        return [float(value) for value in largest]

    def gather(self, value: Any) -> list[Any]:
        """Return what each rank has, in the order of ranks; plain objects and tensors."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found


class StopSignal:
    """Lets all ranks leave at the same step, without an exchange at every step.

    Ranks exchange their wishes at agreed steps only; at each of them rank 0 proposes the next one, so that about
    ``CHECK_SECONDS`` pass in between.
    """

    def __init__(self, worker: Worker, world: World, max_seconds: float | None) -> None:
        self._worker, self._world, self._max_seconds = worker, world, max_seconds
        self._next, self._last_step, self._last_time = 0, 0, time.monotonic()

    def agreed(self, step: int) -> str:
        """Return why all ranks stop after ``step``, or an empty string; every rank calls it at every step."""
        if self._world.size == 1:
            return STOPS[self._wish()]
        if step < self._next:
            return ""
        wish, proposal = self._world.max([self._wish(), self._propose(step) if self._world.rank == 0 else 0])
        self._next = step + int(proposal)
        return STOPS[int(wish)]

    def _wish(self) -> int:
        reason = self._worker.stop_reason
        if reason in STOPS:
            return STOPS.index(reason)
        over = self._max_seconds is not None and self._worker.elapsed_seconds() >= self._max_seconds
        return 1 if over else 0

    def _propose(self, step: int) -> int:
        now = time.monotonic()
        per_step = (now - self._last_time) / max(1, step - self._last_step)
        self._last_step, self._last_time = step, now
        return max(1, min(1000, int(CHECK_SECONDS / max(per_step, 1e-6))))
