"""What editors show of a key: its docstring, each paragraph in one line, and its default."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def with_markdown(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose descriptions are Markdown; those of keys with a default name it."""
    found = {key: _inside(value) for key, value in schema.items()}
    text = schema.get("description")
    if isinstance(text, str):
        shown = "\n\n".join(" ".join(one.split()) for one in text.replace("``", "`").split("\n\n")).strip()
        found["description"] = shown
        default = f"\n\nDefault: `{json.dumps(schema['default'])}`" if "default" in schema else ""
        if default or "`" in shown:  # a plain description is shown with its signs
            found["markdownDescription"] = shown + default
    return found


def _inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return with_markdown(value)
    return [_inside(one) for one in value] if isinstance(value, list) else value
