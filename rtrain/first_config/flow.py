"""Values as the lines of a first config have them."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

_WORD = re.compile(r"[A-Za-z_][\w./-]*")
"""Texts that may need no quotes."""


def in_flow(value: Any) -> str:
    """Return a value on one line, as YAML has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{in_flow(key)}: {in_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(in_flow, value))}]"
    if isinstance(value, str) and not (_WORD.fullmatch(value) and yaml.safe_load(value) == value):
        return json.dumps(value.replace("${", "\\${"), ensure_ascii=False)  # which is YAML, too
    return str(value)
