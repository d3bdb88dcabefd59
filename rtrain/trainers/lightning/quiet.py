"""Keep Lightning's news off the terminal."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out its words on devices, on its products, and on limits that rtrain reports itself."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
        warnings.filterwarnings("ignore", message="GPU available but not used")  # it is use_gpu that decides
        # rtrain's own loaders continue inside an epoch, and those of a datamodule are wrapped in them.
        warnings.filterwarnings("ignore", message="You're resuming from a checkpoint that ended before the epoch")
        # No loader at all, which is how rtrain says that there is no validation.
        warnings.filterwarnings("ignore", message="Total length of `list` across ranks is zero")
        try:
            yield
        finally:
            logger.setLevel(level)
