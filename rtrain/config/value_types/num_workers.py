"""How many workers: a number, or a range of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Elastic(int):
    """Any number of workers from ``min`` on; as a number it is the largest of them."""

    min: int

    def __new__(cls, least: int, most: int) -> Elastic:
        """Take the smallest and the largest number."""
        made = super().__new__(cls, most)
        made.min = least
        return made

    def __getnewargs__(self) -> tuple[int, int]:  # type: ignore[override]  # int's own has one argument
        return self.min, int(self)


def read_num_workers(value: Any) -> int:
    """Return a number of workers, or a range of them from ``{min: 1, max: 8}`` or ``[1, 8]``."""
    if isinstance(value, Elastic):
        return value
    if isinstance(value, Mapping):
        if set(value) != {"min", "max"}:
            raise ValueError("must be a range with only min and max, e.g. {min: 1, max: 8}")
        value = [value["min"], value["max"]]
    if not isinstance(value, list | tuple):
        count = _whole(value)
        if count is None:
            raise ValueError("must be a whole number, or a range like [1, 8]")
        if count < 0:
            raise ValueError("must be at least 0")
        return count
    bounds = [_whole(one) for one in value]
    if len(bounds) != 2 or None in bounds:
        raise ValueError("must be a range of two whole numbers like [1, 8]")
    least, most = (int(one or 0) for one in bounds)
    if least < 1:
        raise ValueError(f"must be a range that starts at 1 or more; {least} workers train in this process")
    if least > most:
        raise ValueError(f"has a min of {least} above its max of {most}")
    return Elastic(least, most)


def _whole(value: Any) -> int | None:
    """Return a whole number, also where an environment variable gives it as text; None for anything else."""
    if isinstance(value, str) and value.strip().lstrip("-").isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_WORKERS = {"type": "integer", "minimum": 1}
NUM_WORKERS_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": _WORKERS, "minItems": 2, "maxItems": 2},
        {
            "type": "object",
            "properties": {"min": _WORKERS, "max": _WORKERS},
            "required": ["min", "max"],
            "additionalProperties": False,
        },
    ]
}
