"""Recognise an error that repeats: without ranks, addresses, process ids, time stamps, durations and temporary paths.

Other numbers count: two errors that name different shapes, indices or lines of code are two errors.
"""

from __future__ import annotations

import re
import tempfile

_TEMPORARY = "|".join(map(re.escape, sorted({"/tmp", "/var/tmp", "/var/folders", "/dev/shm", tempfile.gettempdir()})))
_SOURCE = r"py|pyx|c|cc|cpp|cu|cuh|h|hpp|rs|go|java|js|ts"
_NUMBERS = r"\[?\d+(?:, ?\d+)*\]?"

CHANGING = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<id>"),
    (r"\b\d{4}-\d\d-\d\d(?:[T _]\d\d[:-]\d\d[:-]\d\d(?:[.,_]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"(?<![\d:])\d\d:\d\d:\d\d(?:[.,]\d+)?(?![\d:])", "<time>"),
    (r"\b1[5-9]\d{8}(?:\.\d+)?\b", "<time>"),
    (rf"(?:/private)?(?:{_TEMPORARY})/[^\s'\"`,;:()\[\]{{}}<>]+", "<path>"),
    (r"\b0x[0-9a-f]+\b", "<address>"),
    (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b", "<id>"),
    (r"\[?\b(?:\d{1,3}\.){3}\d{1,3}\b\]?(?::\d{1,5}\b)?", "<host>"),
    (r"\[(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}\](?::\d{1,5}\b)?", "<host>"),
    (rf"(?<![\w.-])(?![\w.-]+\.(?:{_SOURCE}):)[a-z][\w.-]*:\d{{4,5}}\b", "<host>"),
    (r"\bcuda:\d+\b", "<device>"),
    (r"\bprocess \d+ has \d+(?:\.\d+)? \w+ memory in use\. ?", ""),  # the others on this GPU just then
    (r" \(workers? [\d, ]+ failed after it\)", ""),
    (rf"(?<![a-z])(ranks?|workers?|pids?|process(?:es)?|ports?|threads?|gpus?)(?:\(s\))?[ =:#-]*{_NUMBERS}", r"\1 <n>"),
    (r"\b\d+(?:\.\d+)? ?(?:ns|us|ms|s|secs?|seconds?|min|minutes?|hours?)\b", "<duration>"),
)
"""What differs between two messages of one error, and what stands in its place; in this order."""
_CHANGING = tuple((re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in CHANGING)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def lasting(message: str, *, numbers: bool = True) -> str:
    """Return what of a message would be there again if the error came again.

    Args:
        message: Of an exception.
        numbers: Whether its other numbers count; those of errors about memory never agree.
    """
    for pattern, instead in _CHANGING:
        message = pattern.sub(instead, message)
    return message if numbers else _NUMBER.sub("<n>", message)
