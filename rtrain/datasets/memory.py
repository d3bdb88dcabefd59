"""Whether data fits in memory, by its size against what is free."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rtrain.errors import DatasetError

SHARE = 0.25
"""Part of the free memory that data may take: reading and handing it to the workers needs copies."""


@dataclass(frozen=True)
class MemoryChoice:
    """Where the rows live, and why."""

    memory: str
    reason: str


def choose_memory(asked: str, num_bytes: int) -> MemoryChoice:
    """Return ``resident`` or ``stream`` for data of ``num_bytes`` bytes once decoded.

    Raises:
        DatasetError: ``resident`` is asked for data that is larger than all free memory.
    """
    free = free_bytes()
    size, room = readable(num_bytes), readable(free)
    if asked == "resident" and num_bytes > free:
        message = f"dataset.memory is resident, but about {size} of data don't fit in {room} of free memory."
        raise DatasetError(message, "Use dataset.memory=stream.")
    if asked != "auto":
        return MemoryChoice(asked, f"asked for; about {size}, {room} of memory are free")
    if num_bytes <= free * SHARE:
        return MemoryChoice("resident", f"about {size} fit in {room} of free memory")
    return MemoryChoice("stream", f"about {size} are more than {SHARE:.0%} of {room} of free memory")


def always_resident(num_bytes: int) -> str:
    """Return why data of ``num_bytes`` bytes is resident, for sources that know no other way.

    Raises:
        DatasetError: It is larger than all free memory.
    """
    free = free_bytes()
    size, room = readable(num_bytes), readable(free)
    if num_bytes > free:
        message = f"about {size} of data don't fit in {room} of free memory, and this source always holds all rows."
        raise DatasetError(message, "Convert it to Parquet, which can be streamed.")
    return f"about {size}, always held in memory"


def free_bytes() -> int:
    """Return the memory that this process can still take, the limit of its container included."""
    limits = [_available(), _left_in_group(Path("/sys/fs/cgroup"))]
    return min(limit for limit in limits if limit is not None)


def _available() -> int:
    path = Path("/proc/meminfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _left_in_group(group: Path) -> int | None:
    """Return what a container's limit leaves, page cache counted as free; None where there is no limit."""
    limit, current, stat = (group / name for name in ("memory.max", "memory.current", "memory.stat"))
    if not (limit.exists() and current.exists()) or limit.read_text().strip() == "max":
        return None
    counts = dict(line.split() for line in stat.read_text().splitlines()) if stat.exists() else {}
    cached = int(counts.get("inactive_file", 0))
    return max(0, int(limit.read_text()) - int(current.read_text()) + cached)


def readable(num_bytes: float) -> str:
    """Return a size as people write it, e.g. ``47.0 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"
