"""Every trial is trained to its end."""

from __future__ import annotations

from dataclasses import dataclass

from rtrain.schedulers import base
from rtrain.schedulers.base import SchedulerConf


@dataclass(kw_only=True)
class Conf(SchedulerConf):
    """Every trial is trained to its end."""


class Scheduler(base.Scheduler):
    """Every trial is trained to its end."""

    Conf = Conf

    def hear(self, trial: int, length: int, value: float) -> None:
        """Let it continue."""
