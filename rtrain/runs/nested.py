"""Nested mappings, such as configs and the metrics that loops report, by one name for each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat(nested: Mapping[str, Any], separator: str = ".", before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a nested mapping by its path; lists and empty mappings are values.

    Args:
        nested: The mapping.
        separator: What joins the names of a path: ``trainer.optimizer.lr``, ``val/loss``.
        before: Begins each name.
    """
    for key, value in nested.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and value:
            yield from flat(value, separator, f"{name}{separator}")
        else:
            yield name, value
