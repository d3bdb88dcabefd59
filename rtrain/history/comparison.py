"""What differs between runs: config, environment, code, data, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtrain.errors import RtrainError
from rtrain.history.query.columns import NOISE, typed_keys
from rtrain.history.rows import Row
from rtrain.runs.manifest import Manifest, read_manifest
from rtrain.runs.origin import read_packages

Facts = Mapping[str, Sequence[Any]]
"""The value of each run by name; None where a run has none."""


class Comparison:
    """What differs between two or more runs or trials, and their results.

    Args:
        rows: The runs.
        all_keys: Also compare config keys that only some of the runs have and that were not typed: runs of different
            trainers have many.
    """

    def __init__(self, rows: Sequence[Row], *, all_keys: bool = False) -> None:
        self.rows = rows
        folders = [_folder(row) for row in rows]
        manifests, packages = [_manifest(one) for one in folders], [read_packages(one) for one in folders]
        kept = packages if all(packages) else [{} for _ in rows]  # runs of older versions kept none
        config = different([_config(row) for row in rows])
        typed = {key for row in rows for key in typed_keys(row)}
        shown = {name for name, values in config.items() if all_keys or None not in values or f"config.{name}" in typed}
        self.num_hidden = len(config) - len(shown)
        """Keys of the config that were left out."""
        self.sections: dict[str, Facts] = {
            "config": {name: values for name, values in config.items() if name in shown},
            "environment": different([{**one, **_environment(run)} for one, run in zip(kept, manifests, strict=True)]),
            "code": different([_code(one) for one in manifests]),
            "data": different([_data(one) for one in manifests]),
            "result": side_by_side([_result(row) for row in rows]),
            "latest metrics": side_by_side([row.metrics for row in rows]),
        }
        """By title; empty where nothing differs."""
        self.unknown = () if all(one is not None and one.git for one in manifests) else ("code",)
        """Titles of what can't be compared."""


def side_by_side(facts: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the value of each run by name."""
    names = dict.fromkeys(name for one in facts for name in one)
    return {name: [one.get(name) for one in facts] for name in names}


def different(facts: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the value of each run by name, of what is not the same in all of them."""
    return {name: values for name, values in side_by_side(facts).items() if any(one != values[0] for one in values[1:])}


def _folder(row: Row) -> Path:
    """Return the folder of a run; of a sweep that of its first trial, whose environment, code and data all have."""
    trials = row.path.glob("*/manifest.json") if row.kind == "sweep" else ()
    return min((one.parent for one in trials), default=row.path)


def _manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except RtrainError:  # the list shows it as damaged
        return None


def _config(row: Row) -> dict[str, Any]:
    return {name.removeprefix("config."): value for name, value in row.config.items() if name not in NOISE}


def _environment(manifest: Manifest | None) -> dict[str, Any]:
    if manifest is None:
        return {}
    host = {name: manifest.host.get(name) for name in ("hostname", "platform", "num_cores", "memory_bytes")}
    return {**host, **manifest.versions}


def _code(manifest: Manifest | None) -> dict[str, Any]:
    git = (manifest and manifest.git) or {}
    names = ("commit", "branch", "dirty", "diff_sha256", "untracked_code_sha256")
    return {name: git.get(name) for name in names}


def _data(manifest: Manifest | None) -> dict[str, Any]:
    data = (manifest and manifest.dataset) or {}
    rows = data.get("num_rows")
    counts = {f"rows.{split}": count for split, count in rows.items()} if isinstance(rows, Mapping) else {}
    return {"name": data.get("name"), "fingerprint": data.get("fingerprint"), **counts}


def _result(row: Row) -> dict[str, Any]:
    monitor = row.get("monitor")
    best = {} if monitor is None else {f"best {monitor}": row.get("best")}
    return {
        "status": row.status,
        "seconds": row.get("seconds"),
        "epoch": row.get("epoch"),
        "step": row.get("step"),
        **best,
    }


def common_metrics(rows: Sequence[Row]) -> list[str]:
    """Return the metrics that several runs have: first what they monitor, last those of training."""
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    shared = [name for name in names if sum(name in row.metrics for row in rows) > 1]
    monitored = [row.get("monitor") for row in rows]
    return sorted(shared, key=lambda name: (-monitored.count(name), name.startswith("train/"), name))
