"""A custom scheduler: a trial ends that has not become better for some epochs."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rtrain.schedulers import base
from rtrain.schedulers.base import Stop, StoppingConf


@dataclass(kw_only=True)
class Conf(StoppingConf):
    """The keys below ``sweep.scheduler:``; ``unit`` and ``grace`` come with ``StoppingConf``."""

    patience: Annotated[int, Field(ge=1)] = 3
    """Epochs without improvement after which a trial ends."""


class Scheduler(base.Scheduler):
    """A trial ends that has not become better for some epochs."""

    Conf = Conf

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._best: dict[int, tuple[int, float]] = {}
        """By trial: the length at which it was best, and the value."""

    def hear(self, trial: int, length: int, value: float) -> Stop | None:
        """Stop the trial if its best value is too long ago; None lets it continue."""
        there, best = self._best.get(trial, (length, math.nan))
        if math.isnan(best) or self.goal.is_better(value, best):
            there, best = self._best[trial] = length, value
        if length < self.conf.grace or length - there < self.conf.patience:
            return None
        return Stop(f"patience: nothing better than {best:.4g} for {length - there} {self.conf.unit}")
