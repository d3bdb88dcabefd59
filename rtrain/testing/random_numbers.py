"""The random numbers of a process, which belong to whoever called rtrain."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def random_numbers_stay() -> Iterator[None]:
    """Fail if the block decides what the process draws after it, by Python, NumPy or a framework that is imported."""
    _seed()
    expected = _drawn()
    _seed()
    yield
    assert _drawn() == expected, "the process draws other random numbers than it would have drawn without training"


def _seed() -> None:
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(1)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(1)
    random.seed(1)
    np.random.seed(1)


def _drawn() -> dict[str, float]:
    drawn = {"random": random.random(), "numpy": np.random.rand()}
    if "torch" in sys.modules:
        drawn["torch"] = float(sys.modules["torch"].rand(1))
    if "keras" in sys.modules:
        drawn["keras"] = float(sys.modules["keras"].random.uniform(()))
        drawn["tensorflow"] = float(sys.modules["tensorflow"].random.uniform(()))
    return drawn
