"""What the list knows of a run, a trial or a sweep: plain facts by name, read from its files alone."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rtrain.errors import RtrainError
from rtrain.history.places import Place
from rtrain.runs.filesystem.files import SWEEP
from rtrain.runs.filesystem.plain_files import read_json
from rtrain.runs.labels import Labels, read_labels
from rtrain.runs.manifest import MANIFEST, SCHEMA_VERSION, check_kinds, manifest_of, what_is_wrong
from rtrain.runs.nested import flat
from rtrain.runs.status import Status, is_killed
from rtrain.storage.stores import is_url

VERSION = 2
"""Of the facts that an index keeps; raise it when they change. Each version has a separate index."""
SHORT_ID = re.compile(r"-([0-9a-f]{4,8})$")
"""Ends the name of a run directory, or of a sweep."""
TRIAL = re.compile(r"(\d+)-")
"""Begins the name of a trial's folder."""
CONFIG = "config."
"""Begins the names of the facts of the config."""
ERRORS = (OSError, ValueError, TypeError, KeyError, AttributeError)
"""What a file of any content may lead to while it is read."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a row as they are kept: of thousands of rows few are asked for more than a few of them."""

    names: tuple[str, ...]
    """Those of the config come last. Rows may share them."""
    own: str
    """The values of all others, as JSON."""
    config: str
    """The values of the config, as JSON."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Facts:
        """Return what is kept of plain facts."""
        own = {name: value for name, value in facts.items() if not name.startswith(CONFIG)}
        config = {name: value for name, value in facts.items() if name.startswith(CONFIG)}
        return cls((*own, *config), json.dumps(list(own.values())), json.dumps(list(config.values())))


class Row:
    """One run, trial or sweep of the list.

    Args:
        place: Its folder, or its URL.
        started: Seconds since 1970; 0 if unknown.
        kept: Its facts.
        brought: Where the record of one in a store was brought.
    """

    def __init__(self, place: Place, started: float, kept: Facts, brought: Path | None = None) -> None:
        self.place, self.kind, self.started, self._kept = place.path, place.kind, started, kept
        self._brought = brought

    @classmethod
    def of(cls, place: Place, facts: Mapping[str, Any], brought: Path | None = None) -> Row:
        """Return the row of a run whose facts are known."""
        return cls(place, float(facts.get("started") or 0.0), Facts.of(facts), brought)

    @property
    def path(self) -> Path:
        """The folder; of a run in a store, the one that its record was brought into."""
        return self._brought or Path(self.place)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its facts; rows may share them."""
        return self._kept.names

    @cached_property
    def _own(self) -> dict[str, Any]:
        """The facts that are not of the config."""
        found: dict[str, Any] = dict(zip(self.names, json.loads(self._kept.own), strict=False))
        if found["status"] == Status.RUNNING and not is_url(self.place):
            found["status"] = Status.KILLED if is_killed(self.path, found.get("host")) else Status.RUNNING
        return found

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config, flat, with ``config.`` before each key."""
        values = json.loads(self._kept.config)
        return dict(zip(self.names[len(self.names) - len(values) :], values, strict=True))

    @property
    def facts(self) -> dict[str, Any]:
        """What its files say, by name; of the config and the metrics each value: ``config.trainer.optimizer.lr``."""
        return {**self._own, **self.config}

    def get(self, name: str) -> Any:
        """Return a fact; None if the run has none of that name."""
        if name == "age":
            return max(0.0, time.time() - self.started) if self.started else None
        if name == "seconds" and self.status == Status.RUNNING:
            return self.get("age")
        if name == "path":
            return self.place
        return (self.config if name.startswith(CONFIG) else self._own).get(name)

    @property
    def id(self) -> str:
        """The short id: of a trial that of its sweep and its number, ``330826/3``."""
        return str(self._own["id"])

    @property
    def name(self) -> str:
        """``run.name``; of a sweep, that of its trials, or ``sweep.name``."""
        return str(self._own["name"])

    @property
    def status(self) -> str:
        """As the manifest says it, or ``killed`` or ``damaged``."""
        return str(self._own["status"])

    @property
    def metrics(self) -> dict[str, float | None]:
        """The latest value of each metric."""
        return {name[8:]: value for name, value in self._own.items() if name.startswith("metrics.")}


def read_facts(place: Place) -> dict[str, Any]:
    """Return what the files of a run, a trial or a sweep say, as plain data. Whatever they hold, it is a row."""
    path = Path(place.path)
    return facts_of(place, lambda: read_json(path, file_of(place.kind)), read_labels(path))


def file_of(kind: str) -> str:
    """Return the name of the file that says what a run, a trial or a sweep is."""
    return SWEEP if kind == "sweep" else MANIFEST


def facts_of(place: Place, read: Callable[[], Any], labels: Labels) -> dict[str, Any]:
    """Return what the file of a run, a trial or a sweep says, which may be kept elsewhere, in a store say.

    Args:
        place: Where it is.
        read: Returns the content of the file.
        labels: Those of the run.
    """
    name = file_of(place.kind)
    try:
        stored = read()
        found = _sweep_facts(stored) if place.kind == "sweep" else _facts_of(stored)
    except FileNotFoundError:
        found = {"status": Status.DAMAGED, "problem": f"there is no {MANIFEST}"}
    except (*ERRORS, RtrainError) as error:
        found = {"status": Status.DAMAGED, "problem": f"its {name} can't be read: {what_is_wrong(error)}"}
    return _named(place, found, labels)


def _named(place: Place, found: dict[str, Any], labels: Labels) -> dict[str, Any]:
    path = Path(place.path)
    configured, notes = found.pop("configured_tags", ()), found.get("note")
    tags = labels.tags_with(configured)
    named = {
        "id": _short_id(path, place.kind),
        "kind": place.kind,
        "name": found.pop("name", None) or _name_of(path, place.kind),
    }
    if place.kind == "trial":
        named |= {"sweep": path.parent.name, "trial": _trial_number(path)}
    return {**named, **found, "tags": tags, "note": notes if labels.note is None else labels.note}


def _name_of(path: Path, kind: str) -> str:
    return path.name.partition("-sweep-")[0] if kind == "sweep" else path.parent.name


def _short_id(path: Path, kind: str) -> str:
    found = SHORT_ID.search(path.parent.name if kind == "trial" else path.name)
    short = found[1] if found else path.parent.name if kind == "trial" else path.name
    return f"{short}/{_trial_number(path)}" if kind == "trial" else short


def _trial_number(path: Path) -> int | str:
    found = TRIAL.match(path.name)
    return int(found[1]) if found else path.name


def _facts_of(stored: Any) -> dict[str, Any]:
    try:
        return _run_facts(stored)
    except ERRORS:
        check_kinds(stored)  # says which field it is
        raise


def _run_facts(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a manifest. One of another version gives what it has, and ``problem`` says so."""
    config = stored.get("config") or {}
    trainer, scaling, run = (config.get(name) or {} for name in ("trainer", "scaling", "run"))
    data, host, git = (stored.get(name) or {} for name in ("dataset", "host", "git"))
    best, error = stored.get("best") or {}, stored.get("error") or {}
    started, ended = _timestamp(stored.get("started_at")), _timestamp(stored.get("ended_at"))
    facts = {
        "name": _text(stored.get("run_name")),
        "status": _text(stored.get("status")) or Status.DAMAGED,
        "reason": _text(stored.get("exit_reason")),
        "error": _text(error.get("type")),
        "trainer": _text(trainer.get("type")),
        "dataset": _text(data.get("name") or (config.get("dataset") or {}).get("type")),
        "workers": scaling.get("num_workers"),
        "seed": stored.get("seed"),
        "started": started,
        "ended": ended,
        "seconds": (stored.get("timings_seconds") or {}).get("total") or _between(started, ended),
        "step": stored.get("step"),
        "epoch": stored.get("epoch"),
        "best": _number(best.get("value")),
        "monitor": _text(best.get("monitor")),
        "mode": _text(best.get("mode")),
        "checkpoints": len(stored.get("checkpoints") or ()),
        "size": sum(int(one.get("size_bytes") or 0) for one in stored.get("checkpoints") or ()),
        "resumes": len(stored.get("resumes") or ()),
        "host": _text(host.get("hostname")),
        "commit": _text(git.get("commit")),
        "dirty": git.get("dirty"),
        "config_file": _text(stored.get("config_file")),
        "overrides": [str(one) for one in stored.get("overrides") or ()],
        "parent": _text(stored.get("parent_run")),
        "note": _text(run.get("notes")),
        "configured_tags": [str(one) for one in run.get("tags") or ()],
    }
    if (problem := _problem(stored)) is not None:
        facts["problem"] = problem
    return _known(facts) | _flat_facts(stored)


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in facts.items() if one is not None}


def _flat_facts(stored: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(flat(stored.get("config") or {}, before=CONFIG))
    found |= {f"metrics.{name}": _number(value) for name, value in (stored.get("metrics") or {}).items()}
    return found | {f"values.{name}": value for name, value in (stored.get("values") or {}).items()}


def _problem(stored: Mapping[str, Any]) -> str | None:
    version = stored.get("schema_version")
    if version != SCHEMA_VERSION:
        return f"its manifest has schema version {version}; this rtrain supports {SCHEMA_VERSION}"
    try:
        manifest_of(stored)
    except ERRORS as error:
        return f"its manifest is damaged: {what_is_wrong(error)}"
    return None


def _sweep_facts(stored: Mapping[str, Any]) -> dict[str, Any]:
    goal: Mapping[str, Any] = next(iter(stored.get("goals") or ()), {})
    trials = stored["trials"]
    counts = Counter(str(one["status"]) for one in trials)
    best: Mapping[str, Any] = next((one for one in trials if one["number"] == stored.get("best")), {})
    facts = {
        "status": str(stored["status"]),
        "started": _timestamp(stored.get("started_at")),
        "seconds": sum(float(one.get("seconds") or 0.0) for one in trials),
        "trials": len(trials),
        "reason": ", ".join(f"{number} {status}" for status, number in counts.items()),
        "failed": counts[Status.FAILED],
        "search": _text(stored.get("search")),
        "best": _number(next(iter(best.get("values") or ()), None)),
        "best_trial": best.get("number"),
        "monitor": _text(goal.get("metric")),
        "mode": _text(goal.get("mode")),
        "axes": [str(axis["key"]).lstrip("+") for axis in stored.get("axes") or ()],
    }
    return _known(facts)


def _timestamp(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def _between(started: float | None, ended: float | None) -> float | None:
    return None if started is None or ended is None else max(0.0, ended - started)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
