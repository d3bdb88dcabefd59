"""What Ray Data logs while a loop uses it: the terminal has its warnings only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ray.data import DataContext
from ray.util.debug import log_once


@contextmanager
def quiet_ray_data(*, is_driver: bool) -> Iterator[None]:
    """Keep progress and news of Ray Data out of the terminal in the block.

    Args:
        is_driver: ``driver.log`` has it all; on workers, the logs of Ray do.
    """
    logger, context = logging.getLogger("ray.data"), DataContext.get_current()
    consoles = [one for one in logger.handlers if isinstance(one, logging.StreamHandler)]
    before = [one.level for one in consoles]
    log_once("ray_data_progress_manager_disabled")  # Ray Data would warn that bars are turned off
    settings = logger.level, logger.propagate, context.enable_progress_bars
    for console in consoles:
        console.setLevel(logging.WARNING)
    logger.setLevel(logging.INFO)
    logger.propagate, context.enable_progress_bars = is_driver, False
    try:
        yield
    finally:
        logger.setLevel(settings[0])
        logger.propagate, context.enable_progress_bars = settings[1:]
        for console, level in zip(consoles, before, strict=True):
            console.setLevel(level)
