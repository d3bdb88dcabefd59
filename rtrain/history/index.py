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
from hashlib import sha256
from pathlib import Path
from typing import Any

from rtrain.errors import RtrainError
from rtrain.history.places import Place, default_folders, find_places
from rtrain.history.rows import VERSION, Facts, Row, read_facts
from rtrain.runs.manifest import run_near
from rtrain.storage.stores import is_url

BATCH = 500
"""Rows that are written in one transaction: other processes wait only as long as one takes."""
WAIT_SECONDS = 5.0
Entry = tuple[float, Facts]
"""When a run started, and its facts."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS shapes (key TEXT PRIMARY KEY, names TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS runs (path TEXT PRIMARY KEY, stamp TEXT, started REAL, shape TEXT, own TEXT, "
    "config TEXT) WITHOUT ROWID",
)
"""Most runs have facts of the same names: these are kept once, so that there is half as much to read."""
_SELECT = "SELECT path, stamp, started, shape, own, config FROM runs"


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
    return Row.of(place, read_facts(place))


def _entry(facts: Mapping[str, Any]) -> Entry:
    return float(facts.get("started") or 0.0), Facts.of(facts)


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
        for table in _TABLES:
            index.execute(table)
        for kept in ("SELECT key, names FROM shapes", _SELECT):
            index.execute(f"{kept} LIMIT 1").fetchall()
    except sqlite3.Error:
        index.close()
        raise
    return index


def _updated(index: sqlite3.Connection, places: Sequence[Place], folders: Sequence[str | Path]) -> dict[str, Entry]:
    """Return the data of each place; what changed since the index was written is read again, and written."""
    known = _known(index, folders)
    found, changed = dict[str, Entry](), list[tuple[Place, Entry]]()
    for place in places:
        stamp, entry = known.pop(place.path, ("", None))
        if entry is None or stamp != place.stamp:
            entry = _entry(read_facts(place))
            changed.append((place, entry))
            if len(changed) % BATCH == 0:
                _write(index, changed[-BATCH:])
        found[place.path] = entry
    _write(index, changed[len(changed) - len(changed) % BATCH :], gone=known)
    return found


def _known(index: sqlite3.Connection, folders: Sequence[str | Path]) -> dict[str, tuple[str, Entry | None]]:
    found: dict[str, tuple[str, Entry | None]] = {}
    with suppress(sqlite3.Error):  # what can't be read is read from the directories
        shapes = {key: tuple(json.loads(names)) for key, names in index.execute("SELECT key, names FROM shapes")}
        for folder in map(os.path.abspath, folders):
            below = (folder, f"{folder}/", f"{folder}0")  # 0 follows / in ASCII
            rows = index.execute(f"{_SELECT} WHERE path = ? OR path > ? AND path < ?", below)
            found |= {
                path: (stamp, (started, Facts(shapes[shape], own, config)) if shape in shapes else None)
                for path, stamp, started, shape, own, config in rows
            }
    return found


def _write(index: sqlite3.Connection, rows: Sequence[tuple[Place, Entry]], gone: Iterable[str] = ()) -> None:
    """Keep rows, and forget runs that are gone. An index that can't be written now is written next time."""
    lost = [(path,) for path in gone]
    if not rows and not lost:
        return
    shapes = {facts.names: sha256(json.dumps(facts.names).encode()).hexdigest()[:16] for _, (_, facts) in rows}
    try:
        index.execute("BEGIN IMMEDIATE")
        named = [(key, json.dumps(names)) for names, key in shapes.items()]
        index.executemany("INSERT OR IGNORE INTO shapes VALUES (?, ?)", named)
        kept = [
            (place.path, place.stamp, started, shapes[facts.names], facts.own, facts.config)
            for place, (started, facts) in rows
        ]
        index.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", kept)
        index.executemany("DELETE FROM runs WHERE path = ?", lost)
        index.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            index.execute("ROLLBACK")
