"""The ways to share a training between ranks, by the names that ``trainer.strategy`` has for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch.distributed as dist

from rtrain.trainers.torch.config import Conf
from rtrain.trainers.torch.ranks import TorchRanks
from rtrain.trainers.torch.strategies.base import Strategy
from rtrain.trainers.worker import Worker


def strategy_class(name: str) -> type[Strategy]:
    """Return the class of a strategy; imports nothing that the others need."""
    found: type[Strategy] = import_module(f"{__name__}.{name}").STRATEGY
    return found


def make_strategy(conf: Conf, ranks: TorchRanks) -> Strategy:
    """Return the strategy that ``conf`` names, for this rank."""
    return strategy_class(conf.strategy)(conf, ranks)


@contextmanager
def process_group(worker: Worker) -> Iterator[None]:
    """Create a process group for a process that trains alone, where the strategy needs one."""
    alone = worker.world_size == 1 and not dist.is_initialized()
    if not alone or not strategy_class(worker.conf.strategy).sharded:
        yield
        return
    untyped: Any = dist
    untyped.init_process_group("nccl" if worker.use_gpu else "gloo", store=untyped.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
