"""A custom search: points that fill the space evenly, the Halton sequence (Halton, 1960)."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rtrain.config.sweep_conf import SweepConf
from rtrain.searches import base

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


@dataclass(kw_only=True)
class Conf(SweepConf):
    """The keys below ``sweep:``; ``params``, ``metric``, ``scheduler`` and the like come with ``SweepConf``."""

    num_trials: Annotated[int, Field(ge=1)] = 16
    """How many trials there are."""


class Search(base.Search):
    """Points that fill the space evenly; up to eight parameters."""

    Conf = Conf
    adaptive = False  # what it proposes does not depend on how earlier trials ended

    @property
    def num_trials(self) -> int:
        """As the config says."""
        return self.conf.num_trials

    def propose(self, number: int) -> base.Point | None:
        """Return a value for each parameter, as a command line has it."""
        if number >= self.num_trials:
            return None
        shares = (share(number + 1, prime) for prime in PRIMES)
        return tuple(value_at(axis, part) for axis, part in zip(self.axes, shares, strict=False))


def share(number: int, prime: int) -> float:
    """Return the digits of a number in base ``prime``, mirrored behind the point: from 0 to 1."""
    found, weight = 0.0, 1.0
    while number:
        weight /= prime
        number, digit = divmod(number, prime)
        found += digit * weight
    return found


def value_at(axis: base.Axis, part: float) -> str:
    """Return the value that lies at a part, from 0 to 1, of what a parameter may be."""
    if axis.values:
        return axis.values[int(part * len(axis.values))]
    if axis.log:
        return axis.text(axis.low * math.exp(part * math.log(axis.high / axis.low)))
    return axis.text(axis.low + part * (axis.high - axis.low))
