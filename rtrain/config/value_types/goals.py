"""One word or several: what a sweep looks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MODES = ("auto", "min", "max")
METRIC_SCHEMA = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "null"}]
}
_MODE = {"type": "string", "enum": list(MODES)}
MODE_SCHEMA = {"anyOf": [_MODE, {"type": "array", "items": _MODE, "minItems": 1}]}


def listed(value: Any) -> list[str]:
    """Return one word, several or none as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def read_metric(value: Any) -> Any:
    """Check the name of a metric, or a list of names."""
    return _checked(value, lambda name: bool(name), "the name of a metric, or a list of names", optional=True)


def read_mode(value: Any) -> Any:
    """Check a mode, or a list of modes."""
    return _checked(value, lambda mode: mode in MODES, f"one of: {', '.join(MODES)}; or a list of them")


def _checked(value: Any, is_right: Callable[[str], bool], what: str, *, optional: bool = False) -> Any:
    if value is None and optional:
        return None
    words = value if isinstance(value, list | tuple) else [value]
    if not words or not all(isinstance(word, str) and is_right(word) for word in words):
        raise ValueError(f"must be {what}")
    if len(words) > 1 and optional and len(set(words)) < len(words):
        raise ValueError("names a metric twice")
    return value if isinstance(value, str) else list(words)
