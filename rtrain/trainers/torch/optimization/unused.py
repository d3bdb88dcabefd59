"""Weights that a step leaves out: ``DistributedDataParallel`` allows that only with ``find_unused_parameters``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from rtrain.config.did_you_mean import to_try
from rtrain.errors import TrainingError
from rtrain.text.enumeration import few

KEY = "trainer.find_unused_parameters"
MOST_NAMED = 3
_TOLD = "Expected to have finished reduction in the prior iteration"
"""How torch's error begins."""
_NUMBERS = re.compile(r"Parameter indices which did not receive grad for rank \d+: ([\d ]+)")
"""How it numbers the weights."""


@contextmanager
def unused_named(model: nn.Module, key: str = KEY) -> Iterator[None]:
    """Name the weights, and rtrain's key, where torch finds in the block that a step left some out.

    Args:
        model: What ranks share.
        key: What allows it.

    Raises:
        TrainingError: A step did not use some of the weights.
    """
    try:
        yield
    except RuntimeError as error:
        if _TOLD not in str(error):
            raise
        raise TrainingError(
            f"a step did not use {_names(model, str(error))} of the model, which fails with several workers.",
            to_try(f"{key}=true"),
        ) from error


def _names(model: nn.Module, told: str) -> str:
    """Return the names of the weights that torch numbers, in the order of those that are trained."""
    shared = [name for name, weight in model.named_parameters() if weight.requires_grad]
    found = _NUMBERS.search(told)
    numbers = [int(one) for one in found[1].split()] if found else []
    known = [shared[number] for number in numbers if number < len(shared)]
    return few(known, MOST_NAMED) if known else "some weights"
