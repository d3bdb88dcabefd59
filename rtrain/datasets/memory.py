"""Whether data fits in memory, by its size against what is free."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rtrain.errors import DatasetError

SHARE = 0.25
"""Part of the free memory that data may take: reading it and handing it to Ray needs copies. Workers make none."""


@dataclass(frozen=True)
class MemoryChoice:
    """Where the rows live, and why."""

    memory: str
    reason: str


def choose_memory(asked: str, num_bytes: int, why_resident: str = "") -> MemoryChoice:
    """Return ``resident`` or ``stream`` for data of ``num_bytes`` bytes once decoded.

    Args:
        asked: What the config says.
        num_bytes: Of the rows in memory.
        why_resident: Why these rows can't be streamed; empty if they can.

    Raises:
        DatasetError: ``resident`` is asked for data that is larger than all free memory, or ``stream`` in vain.
    """
    if why_resident and asked == "stream":
        raise DatasetError(f"dataset.memory=stream: {why_resident}.", "Use dataset.memory=resident.")
    if why_resident:
        return MemoryChoice("resident", always_resident(num_bytes))
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
        message = f"about {size} of data don't fit in {room} of free memory, and this source keeps all rows in memory."
        raise DatasetError(message, "Convert it to Parquet, which can be streamed.")
    return f"about {size}, always kept in memory"


def free_bytes(root: Path = Path("/")) -> int:
    """Return the memory that this process can still take, the limits of its container or Slurm job included.

    Args:
        root: Where ``proc`` and ``sys`` are.
    """
    return min([_available(root), *_left_in_groups(root)])


def _available(root: Path) -> int:
    path = root / "proc/meminfo"
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclass(frozen=True)
class _Files:
    """What a version of control groups calls the files of a group."""

    limit: str
    current: str
    cached: str
    """Key of ``memory.stat``: page cache, which counts as free."""


FIRST = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
SECOND = _Files("memory.max", "memory.current", "inactive_file")


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what each limit leaves: of the process's group and of all around it, of both versions."""
    mount, listed = root / "sys/fs/cgroup", root / "proc/self/cgroup"
    places = {mount: SECOND, mount / "memory": FIRST}  # in a container, its own group is where the mount is
    for line in listed.read_text().splitlines() if listed.exists() else ():
        _, controllers, path = line.split(":", 2)
        parts = path.strip("/").split("/")
        if ".." in parts or not (not controllers or "memory" in controllers.split(",")):
            continue
        bases = ((mount, SECOND), (mount / "unified", SECOND)) if not controllers else ((mount / "memory", FIRST),)
        for base, files in bases:
            places |= {base.joinpath(*parts[:depth]): files for depth in range(len(parts) + 1)}
    for group, files in places.items():
        left = _left(group, files)
        if left is not None:
            yield left


def _left(group: Path, files: _Files) -> int | None:
    """Return what the limit of a group leaves, page cache counted as free; None where there is no limit."""
    limit, current, stat = (group / name for name in (files.limit, files.current, "memory.stat"))
    if not (limit.exists() and current.exists()) or limit.read_text().strip() == "max":
        return None
    counts = dict(line.split() for line in stat.read_text().splitlines()) if stat.exists() else {}
    return max(0, int(limit.read_text()) - int(current.read_text()) + int(counts.get(files.cached, 0)))


def readable(num_bytes: float) -> str:
    """Return a size as people write it, e.g. ``47.0 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"
