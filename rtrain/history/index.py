"""An index of runs that may be thrown away at any time: the run directories are the truth.

It is an SQLite file in ``$XDG_CACHE_HOME/rtrain``, by default ``~/.cache/rtrain``, which only this account can read. It
holds what the files of each run said when they were last read, and a stamp that shows whether they changed since.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from rtrain.errors import RtrainError
from rtrain.history.places import Place, default_folders, find_places
from rtrain.history.rows import Row, read_facts
from rtrain.runs.manifest import run_near
from rtrain.storage.stores import is_url

VERSION = 1
"""Of the facts that are kept. Each version has its own file, so that several can be used next to each other."""
BATCH = 500
"""Rows that are written in one transaction: other processes wait only as long as one takes."""
WAIT_SECONDS = 5.0
Entry = tuple[float, str]
"""When a run started, and its facts as JSON."""
_TABLE = "CREATE TABLE IF NOT EXISTS runs (path TEXT PRIMARY KEY, stamp TEXT, started REAL, data TEXT) WITHOUT ROWID"


def list_rows(folders: Sequence[str | Path] = ()) -> list[Row]:
    """Return the runs, trials and sweeps below some folders, the newest first.

    Args:
        folders: Folders, or URLs of folders in stores. None: ``runs``, ``multirun`` and each ``run.root_dir`` of the
            project in the current folder.

    Raises:
        ConfigError: One of the folders does not exist.
    """
    named = [one for one in folders if not is_url(str(one))] if folders else default_folders()
    places = find_places(named)
    with closing(_open()) as index:
        data = _updated(index, places, named)
    rows = [Row(place, *data[place.path]) for place in places]
    for url in (str(one) for one in folders if is_url(str(one))):
        from rtrain.history.stored import stored_rows  # only where it is needed: it imports pyarrow

        rows += stored_rows(url)
    return sorted(rows, key=lambda row: (-row.started, row.place))


def read_row(folder: Path) -> Row:
    """Return the run, trial or sweep of a folder, read from there and not from the index.

    Raises:
        RtrainError: It is none of them.
    """
    real = folder.resolve() if folder.is_symlink() else folder  # ``best`` of a sweep
    place = next(iter(find_places([real])), None)
    if place is None or Path(place.path) != real.absolute():
        raise RtrainError(f"{folder} is not a run directory or a sweep: it has no manifest.json.", run_near(folder))
    return Row(place, *_entry(read_facts(place)))


def _entry(facts: Mapping[str, Any]) -> Entry:
    return float(facts.get("started") or 0.0), json.dumps(facts)


def index_path() -> Path:
    """Return the place of the index.

    Raises:
        RuntimeError: The account has no home.
    """
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "rtrain" / f"runs-{VERSION}.sqlite"


def _open() -> sqlite3.Connection:
    """Open the index; make it again if it is damaged, and do without where none can be kept."""
    for _ in range(2):
        try:
            path = index_path()
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            return _connected(str(path))
        except sqlite3.OperationalError:  # locked for too long, a full disk, a folder that can't be written
            break
        except sqlite3.DatabaseError:
            with suppress(OSError):
                path.unlink()
        except (OSError, RuntimeError):
            break
    return _connected(":memory:")


def _connected(path: str) -> sqlite3.Connection:
    index = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    try:
        index.execute(_TABLE)
        index.execute("SELECT path, stamp, started, data FROM runs LIMIT 1").fetchall()
    except sqlite3.Error:
        index.close()
        raise
    return index


def _updated(index: sqlite3.Connection, places: Sequence[Place], folders: Sequence[str | Path]) -> dict[str, Entry]:
    """Return the data of each place; what changed since the index was written is read again, and written."""
    known = _known(index, folders)
    found, changed = dict[str, Entry](), list[tuple[str, str, float, str]]()
    for place in places:
        stamp, entry = known.pop(place.path, ("", (0.0, "")))
        if stamp != place.stamp:
            entry = _entry(read_facts(place))
            changed.append((place.path, place.stamp, *entry))
            if len(changed) % BATCH == 0:
                _write(index, changed[-BATCH:])
        found[place.path] = entry
    _write(index, changed[len(changed) - len(changed) % BATCH :], gone=known)
    return found


def _known(index: sqlite3.Connection, folders: Sequence[str | Path]) -> dict[str, tuple[str, Entry]]:
    found: dict[str, tuple[str, Entry]] = {}
    with suppress(sqlite3.Error):  # what can't be read is read from the directories
        for folder in map(os.path.abspath, folders):
            inside = (
                "SELECT path, stamp, started, data FROM runs WHERE path = ? OR path > ? AND path < ?",
                f"{folder}/",
            )
            rows = index.execute(inside[0], (folder, inside[1], f"{folder}0"))  # 0 follows / in ASCII
            found |= {path: (stamp, (started, data)) for path, stamp, started, data in rows}
    return found


def _write(index: sqlite3.Connection, rows: Sequence[tuple[str, str, float, str]], gone: Iterable[str] = ()) -> None:
    """Keep rows, and forget runs that are gone. An index that can't be written now is written next time."""
    lost = [(path,) for path in gone]
    if not rows and not lost:
        return
    try:
        index.execute("BEGIN IMMEDIATE")
        index.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", rows)
        index.executemany("DELETE FROM runs WHERE path = ?", lost)
        index.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            index.execute("ROLLBACK")
