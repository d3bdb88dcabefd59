"""Numbers that rtrain finds by itself unless the config gives them."""

from __future__ import annotations

from typing import Any

from pydantic import AfterValidator, WithJsonSchema

AUTO = "auto"


def whole_or_auto(least: int) -> Any:
    """Return the annotations that restrict an ``Any`` field to whole numbers from ``least`` on, or ``auto``."""

    def check(value: Any) -> Any:
        if isinstance(value, str) and value.isdigit():  # an environment variable
            value = int(value)
        if value != AUTO and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"must be a whole number or {AUTO}")
        if value != AUTO and value < least:
            raise ValueError(f"must be at least {least}")
        return value

    number = {"type": "integer", "minimum": least}
    return AfterValidator(check), WithJsonSchema({"anyOf": [number, {"type": "string", "enum": [AUTO]}]})
