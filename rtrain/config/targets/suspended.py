"""Functions of which a call runs no line: it returns something that would have to be iterated, or awaited."""

from __future__ import annotations

from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

GENERATOR, ASYNC = "has a `yield`", "is an `async def`"


def why_suspended(function: Any) -> str | None:
    """Return why a call of a function runs none of its lines, ``GENERATOR`` or ``ASYNC``; None if it runs them."""
    if isgeneratorfunction(function):
        return GENERATOR
    return ASYNC if iscoroutinefunction(function) or isasyncgenfunction(function) else None
