"""Which facts are shown of runs that are listed or compared: those of the config that differ, most varied first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rtrain.config.compose.aliases import KEYS, split_word
from rtrain.history.query.fields import TIMES
from rtrain.history.rows import Row

NOISE = ("config.run.name", "config.run.root_dir", "config.run.tags", "config.run.notes", "config.vars")
"""Keys that differ without making a difference, or that have separate columns."""
CHOICES = ("config.trainer.type", "config.dataset.type")


def differing(rows: Sequence[Row]) -> list[str]:
    """Return the keys of the config that have several values in some rows: first those that were typed.

    A key that is null or missing in a row does not differ there: other trainers have other keys.
    """
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.config.items():
            if value is None:
                continue
            values.setdefault(name, set()).add(json.dumps(value, sort_keys=True))
    typed = Counter(key for row in rows for key in typed_keys(row))
    found = [name for name, different in values.items() if len(different) > 1 and not _is_noise(name)]
    return sorted(found, key=lambda name: (name not in typed, -len(values[name]), -typed[name]))


def typed_keys(row: Row) -> list[str]:
    """Return the facts of the keys that were typed, or that a sweep varied."""
    words = [*(row.get("overrides") or ()), *(row.get("axes") or ())]
    keys = [split_word(word)[1].replace("/", ".") for word in words]
    return [f"config.{KEYS.get(key, key)}" for key in keys]


def _is_noise(name: str) -> bool:
    return name in CHOICES or any(name == one or name.startswith(f"{one}.") for one in NOISE)


def titles(names: Sequence[str]) -> list[str]:
    """Return what stands above columns: as much of the end of each name as tells it from the others."""
    keys = [name.removeprefix("config.").removeprefix("metrics.") for name in names]
    return [short_key(key, keys) for key in keys]


def short_key(key: str, keys: Sequence[str]) -> str:
    """Return the shortest end of a key that is the end of no other one."""
    parts = key.split(".")
    ends = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
    return next((end for end in ends if sum(f".{one}".endswith(f".{end}") for one in keys) == 1), key)


def as_data(row: Row) -> Mapping[str, Any]:
    """Return a row for programs: its facts by name, times as ISO 8601, and the config and the metrics as mappings."""
    groups: dict[str, dict[str, Any]] = {"metrics": {}, "values": {}, "config": {}}
    own: dict[str, Any] = {}
    for name, value in row.facts.items():
        group, dot, key = name.partition(".")
        if dot and group in groups:
            groups[group][key] = value
        else:
            own[name] = datetime.fromtimestamp(value, UTC).isoformat() if name in TIMES else value
    return {**own, "path": row.place, **groups}
