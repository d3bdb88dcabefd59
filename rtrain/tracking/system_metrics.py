"""How busy the driver's machine is, a sample at a time. Names and units are those of MLflow's system metrics."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

from rtrain.loggers.base import SystemSample

logger = logging.getLogger(__name__)

MEGABYTE = 1e6


class SystemMetrics:
    """Takes samples of this machine; used by one thread.

    Args:
        started_at: When the run began: UTC, ISO 8601.
        every_seconds: How often a sample is due.
    """

    def __init__(self, started_at: str, every_seconds: float) -> None:
        self._began, self._every = datetime.fromisoformat(started_at), every_seconds
        self._last: float | None = None

    def due(self) -> SystemSample | None:
        """Return a sample if it is time for one; the first call only begins to count what processors do."""
        import psutil

        now = time.monotonic()
        if self._last is None:
            psutil.cpu_percent()
            self._last = now
        if now - self._last < self._every:
            return None
        self._last = now
        memory = psutil.virtual_memory()
        values = {
            "system/cpu_utilization_percentage": psutil.cpu_percent(),
            "system/system_memory_usage_megabytes": (memory.total - memory.available) / MEGABYTE,
            "system/system_memory_usage_percentage": memory.percent,
            **_gpus(),
        }
        seconds = (datetime.now(UTC) - self._began).total_seconds()
        return SystemSample(seconds=max(0, round(seconds)), values=values)


def _gpus() -> dict[str, float]:
    """Return the utilization and memory of each GPU of NVIDIA's, as far as their driver says it."""
    import pynvml

    found: dict[str, float] = {}
    try:
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            device, name = pynvml.nvmlDeviceGetHandleByIndex(index), f"system/gpu_{index}"
            memory = pynvml.nvmlDeviceGetMemoryInfo(device)
            found[f"{name}_memory_usage_megabytes"] = memory.used / MEGABYTE
            found[f"{name}_memory_usage_percentage"] = 100 * memory.used / memory.total
            found[f"{name}_utilization_percentage"] = float(pynvml.nvmlDeviceGetUtilizationRates(device).gpu)
    except pynvml.NVMLError as error:  # there is no driver, or a GPU that is shared in parts
        logger.debug("no GPU metrics: %s", error)
    return found
