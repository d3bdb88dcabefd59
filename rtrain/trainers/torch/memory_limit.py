"""A limit to the memory that models take that are built for a sanity check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.nn.parameter import is_lazy

MOST_BYTES = 2**30
"""Of weights."""


@dataclass
class Found:
    """What the block built."""

    found_large: bool = False
    """A model was too large, and the block ended there."""


class _TooLargeError(Exception):
    """A model has more weights than a sanity check may take memory for."""


@contextmanager
def small_models() -> Iterator[Found]:
    """Leave the block where modules that it makes have too many weights, before all of them take memory."""
    found, total = Found(), 0

    def count(module: nn.Module, name: str, weight: Any) -> None:
        nonlocal total
        if weight is not None and not is_lazy(weight) and weight.device.type != "meta":
            total += weight.nbytes
        if total > MOST_BYTES:
            raise _TooLargeError

    handle = register_module_parameter_registration_hook(count)
    try:
        yield found
    except _TooLargeError:
        found.found_large = True
    finally:
        handle.remove()
