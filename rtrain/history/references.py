"""Short names of runs, wherever a command expects one: ``last``, ``best:resnet``, ``c5e7``, ``330826/3``.

A trial may be named by its number also after the path of its sweep: ``runs/mlp-sweep-330826/3``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rtrain.config.compose.aliases import quoted, split_word
from rtrain.config.did_you_mean import did_you_mean, to_try
from rtrain.config.files.locations import shown
from rtrain.errors import ConfigError
from rtrain.history.choosing import Goal, best_rows, find_goal, no_rows
from rtrain.history.index import list_rows
from rtrain.history.query.quantities import time_text
from rtrain.history.rows import Row
from rtrain.runs.filesystem.files import SWEEP
from rtrain.runs.manifest import MANIFEST, newest_run
from rtrain.storage.stores import is_url

MOST_LISTED = 12
_WORD = re.compile(r"(last|best)(?::([^/]+))?(?:/(\d+))?")
"""The newest run or the best one, of all or of one name; of a sweep, one of its trials."""
_ID = re.compile(r"([\w.-]+?)(?:/(\d+))?")
"""A short id, the name of a run directory or of a sweep, or the beginning of one."""
_PLAIN = re.compile(r"[/\w.-]+")
"""A path that needs no quotes on a command line."""
_BEST = "To find it: rtrain runs best --metric METRIC"
LEAST = 4
"""Characters that the beginning of a name needs."""
KEYS = {"run.init_from": (), "run.resume": ("auto", "must", "never")}
"""Keys of a config that name a run, each with the words that mean something else there."""


def find_run(text: str) -> Path:
    """Return the folder that a word stands for: a path that exists, else the run of that short name.

    Raises:
        ConfigError: It is one of several runs, all of which are listed; or there is none; or the sweep has no such
            trial.
    """
    if os.path.lexists(text):
        return Path(text)
    sweep, _, number = text.rstrip("/").rpartition("/")
    if number.isdecimal() and (Path(sweep) / SWEEP).is_file() and sweep:
        rows = list_rows([sweep])
        row = next(one for one in rows if one.kind == "sweep")
        return Path(shown(_trial(row, number, rows).path))
    match, name = _WORD.fullmatch(text), _ID.fullmatch(text)
    if match is None and name is None:
        return Path(text)
    rows = list_rows()
    if match is not None:
        found = [_trial(_first(match[1], match[2], rows), match[3], rows)]
    else:
        assert name is not None
        found = _named(name[1], name[2], rows)
    if not found:
        return Path(text)  # the command says what is wrong with it
    if len(found) > 1:
        raise _ambiguous(text, found)
    return Path(shown(found[0].path))


def find_model(text: str) -> Path:
    """Return what ``find_newest`` returns; of a sweep, its best trial.

    Raises:
        ConfigError: It is one of several runs, a sweep whose best trial is not known, or a copy in a store.
    """
    if is_url(text):
        raise _is_copy(text)
    found = find_newest(text)
    if not (found / SWEEP).is_file():
        return found
    best = found / "best"
    if best.is_dir():
        return found / best.resolve().name
    sweep, trial = shlex.quote(shown(found)), f"{found.name.rpartition('-')[2]}/0"
    from rtrain.sweeps.record.sweep_record import read_sweep  # not for a Tab

    data = read_sweep(found)
    if data.get("best") is None:
        raise ConfigError(
            f"{sweep} has no best trial: none succeeded, or no metric is set.",
            f"Name a trial, e.g. {trial}, or set the metric: rtrain resume {sweep} sweep.metric=...",
        )
    name: str = data["trials"][data["best"]]["name"]
    if not (found / name).is_dir():
        raise ConfigError(f"{sweep}: its best trial, {name}, has been removed.", f"Name another trial, e.g. {trial}")
    return found / name  # the sweep was copied without the link


def find_newest(text: str) -> Path:
    """Return what ``find_run`` returns; of a folder that holds runs, and is none, the newest one: ``runs/mlp``."""
    found = find_run(text)
    if (found / SWEEP).is_file() or (found / MANIFEST).is_file():
        return found
    return newest_run(found) or found


def with_paths(overrides: Sequence[str]) -> list[str]:
    """Return overrides with the paths of the runs that their short names stand for: ``run.init_from=best:mlp``.

    Raises:
        ConfigError: One may be one of several runs, or the best one is not known.
    """
    return [_with_path(word) for word in overrides]


def _with_path(word: str) -> str:
    sign, key, value = split_word(word)
    if key not in KEYS or not value or value in KEYS[key]:
        return word
    if is_url(value):
        raise _is_copy(value, f"{key}: ")
    found = str(find_model(value) if key == "run.init_from" else find_run(value))
    if found == value:
        return word
    return f"{sign}{key}={found if _PLAIN.fullmatch(found) else quoted(found)}"


def _is_copy(url: str, before: str = "") -> ConfigError:
    return ConfigError(f"{before}{url} is a copy in a store.", to_try(shlex.join(["rtrain", "runs", "fetch", url])))


def run_or_url(text: str) -> str:
    """Return what ``find_newest`` returns as a text; a URL stays as it is."""
    return text if is_url(text) else str(find_newest(text))


def existing_run(text: str) -> Path:
    """Return the folder of a run or sweep that a word stands for.

    Raises:
        ConfigError: It is one of several runs, or none.
    """
    if is_url(text):
        raise _is_copy(text)
    found = find_run(text)
    if not found.is_dir():
        rows = list_rows()
        if text in {row.name for row in rows}:
            raise ConfigError(
                f"'{text}' is a name that several runs can have.", did_you_mean(f"last:{text}", f"best:{text}")
            )
        raise no_rows(f"there is no run '{text}'.", rows)
    return found


def is_a_sweep(text: str, folder: Path) -> ConfigError:
    """Return the error for a sweep where a run is needed."""
    return ConfigError(
        f"'{text}' is a sweep; each of its trials is a run.", did_you_mean(f"{text}/0", f"best:{folder.name}")
    )


def _first(word: str, name: str | None, rows: Sequence[Row]) -> Row:
    """Return the newest run or sweep, or the best run or trial."""
    called = [row for row in rows if name is None or _is_called(row, name)]
    if word == "best" and called:
        best = best_rows(called, _goal(called, name))
        if best:
            return best[0]
    newest = [row for row in called if row.kind != "trial"]
    if not newest or word == "best":
        raise no_rows(f"there is no run{'' if name is None else f' called {name}'}.", rows)
    return newest[0]


def _goal(rows: Sequence[Row], name: str | None) -> Goal:
    try:
        return find_goal(rows, rows)
    except ConfigError as error:
        names = dict.fromkeys(row.name for row in rows if row.get("best") is not None)
        several = name is None and len(names) > 1
        hint = did_you_mean(*(f"best:{one}" for one in list(names)[:MOST_LISTED])) if several else _BEST
        raise ConfigError(f"it is unknown which run is best: {error.message}", hint) from None


def _is_called(row: Row, name: str) -> bool:
    """Return whether a run or a sweep has a name, which may be a pattern with ``*``."""
    folder = row.path.parent.name if row.kind == "trial" else row.path.name
    return fnmatchcase(row.name, name) or (row.kind != "run" and fnmatchcase(folder, name))


def _named(name: str, trial: str | None, rows: Sequence[Row]) -> list[Row]:
    """Return the runs and sweeps of an id or a name; if there are none, those whose folder's name begins so."""
    tests: tuple[Callable[[Row], bool], ...] = (
        lambda row: name in (row.id, row.path.name),
        lambda row: len(name) >= LEAST and row.path.name.startswith(name),
    )
    for test in tests:
        found = [row for row in rows if test(row) and (row.kind == "sweep" or trial is None)]
        if found:
            return found if trial is None else [_trial(row, trial, rows) for row in found]
    return []


def _trial(row: Row, number: str | None, rows: Sequence[Row]) -> Row:
    if number is None:
        return row
    inside = [one for one in rows if one.kind == "trial" and one.path.parent == row.path]
    found = next((one for one in inside if one.get("trial") == int(number)), None)
    if found is None:
        there = f"its trials: 0 to {len(inside) - 1}" if inside else "It is not a sweep."
        raise ConfigError(f"{shown(row.path)} has no trial {number}.", there)
    return found


def _ambiguous(text: str, found: Sequence[Row]) -> ConfigError:
    lines = [
        f"  {shown(row.path)}  ({row.status}{f', {time_text(row.started)}' if row.started else ''})"
        for row in found[:MOST_LISTED]
    ]
    more = [f"  and {len(found) - MOST_LISTED} more"] if len(found) > MOST_LISTED else []
    return ConfigError("\n".join([f"'{text}' matches {len(found)} runs:", *lines, *more]), "Use its path.")


def reference_words(start: str) -> list[str]:
    """Return the short names that begin so, for completion: words first, then ids, the newest first."""
    rows = list_rows()
    names = list(dict.fromkeys(row.name for row in rows if row.kind == "run"))
    words = ["last", "best", *(f"{word}:{name}" for word in ("last", "best") for name in names)] if rows else []
    ids = [row.id for row in rows if row.kind != "trial" or "/" in start]
    return [one for one in dict.fromkeys([*words, *ids]) if one.startswith(start)]
