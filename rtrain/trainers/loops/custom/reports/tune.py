"""``ray.tune.report`` and ``ray.tune.get_checkpoint`` in a train loop, for functions that are written for Ray Tune.

Without this they would warn, and do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.train import Checkpoint
from ray.train._internal import session
from ray.train.v2._internal.execution.train_fn_utils import TrainFnUtils

from rtrain.errors import TrainingError


class _Session:
    """What Ray Tune's functions look for, by the names that they use."""

    world_rank = 0
    """None would stand for a trial of Ray Tune, where ``ray.train.report`` is refused."""

    def __init__(self, utils: TrainFnUtils) -> None:
        self._utils = utils

    def report(self, metrics: dict[str, Any], checkpoint: Checkpoint | None = None) -> None:
        """Do what ``ray.train.report`` does."""
        self._utils.report(metrics, checkpoint)

    @property
    def loaded_checkpoint(self) -> Checkpoint | None:
        """Return what ``ray.train.get_checkpoint`` does."""
        return self._utils.get_checkpoint()

    def __getattr__(self, name: str) -> Any:
        raise TrainingError(
            f"trainer.train_loop requests {name} from Ray Tune, but it is not a Ray Tune trial.",
            "Of ray.tune, only report and get_checkpoint work; otherwise use ray.train.get_context().",
        )


@contextmanager
def reached_by_ray_tune(utils: TrainFnUtils) -> Iterator[None]:
    """Have Ray Tune's functions for reports and checkpoints reach ``utils`` in the block."""
    before = session._session
    session._session = _Session(utils)
    try:
        yield
    finally:
        session._session = before
