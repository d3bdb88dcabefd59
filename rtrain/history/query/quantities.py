"""Times, durations and sizes as people write them: ``3 days ago``, ``2h``, ``1.5 GB``, ``2026-11-01``."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
    **dict.fromkeys(("month", "months"), 30 * 86400.0),
    **dict.fromkeys(("y", "year", "years"), 365 * 86400.0),
}
BYTES = {
    **{f"{letter}b".strip(): 1000.0**power for power, letter in enumerate(("", "k", "m", "g", "t"))},
    **{f"{letter}ib": 1024.0**power for power, letter in enumerate(("k", "m", "g", "t"), 1)},
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?|an?)\s*([A-Za-z]+)\s*")
_DAYS = {"today": 0, "yesterday": 1}


def read_duration(text: str) -> float | None:
    """Return the seconds of ``2h``, ``1h30min`` or ``3 days``; None if it is not a duration."""
    parts = _amounts(text)
    if not parts or any(unit not in SECONDS for _, unit in parts):
        return None
    return sum(number * SECONDS[unit] for number, unit in parts)


def read_size(text: str) -> float | None:
    """Return the bytes of ``500MB`` or ``1.5 GiB``; None if it is not a size."""
    parts = [(number, unit.lower()) for number, unit in _amounts(text)]
    return parts[0][0] * BYTES[parts[0][1]] if len(parts) == 1 and parts[0][1] in BYTES else None


def read_time(text: str) -> float | None:
    """Return seconds since 1970 of ``3 days ago``, ``yesterday`` or ``2026-11-01 12:00``; None if it is not a time.

    What names no time zone is local time; a day begins at midnight.
    """
    plain = text.strip().lower()
    if plain == "now":
        return time.time()
    if plain in _DAYS:
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        return (midnight - timedelta(days=_DAYS[plain])).timestamp()
    if plain.endswith("ago"):
        seconds = read_duration(plain.removesuffix("ago"))
        return None if seconds is None else time.time() - seconds
    try:
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError):
        return None


def _amounts(text: str) -> list[tuple[float, str]]:
    """Return numbers with their units; nothing if there is anything else."""
    found, at = list[tuple[float, str]](), 0
    while at < len(text):
        match = _AMOUNT.match(text, at)
        if match is None:
            return []
        found.append((1.0 if match[1].startswith("a") else float(match[1]), match[2]))
        at = match.end()
    return found


def age_text(seconds: float) -> str:
    """Return how long ago something was, in one unit: ``5 min``, ``3 h``, ``12 d``."""
    for unit, length, most in (
        ("s", 1, 90),
        ("min", 60, 90),
        ("h", 3600, 36),
        ("d", 86400, 60),
        ("months", 2592000, 24),
    ):
        if seconds < most * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 31536000:.1f} years"


def duration_text(seconds: float) -> str:
    """Return how long something took: ``3.2 s``, ``4:05``, ``1:02:03``."""
    return f"{seconds:.1f} s" if seconds < 60 else clock(round(seconds))


def clock(seconds: float) -> str:
    """Return a time as ``1:23`` or ``1:02:03``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def size_text(num_bytes: float) -> str:
    """Return a size in its largest unit: ``1.2 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if unit == "B" or num_bytes >= 100 else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"


def time_text(timestamp: float) -> str:
    """Return a time to the minute, in the local time zone: ``2026-11-01 12:00``."""
    return datetime.fromtimestamp(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
