"""The copies of runs and sweeps in an object store: as rows of the list, and one of them to be looked at.

They are read each time: no index holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from rtrain.history.places import SWEEP, Place
from rtrain.history.rows import Row, manifest_facts, read_facts
from rtrain.runs.labels import FILE_NAME as LABELS
from rtrain.runs.labels import Labels, labels_of
from rtrain.storage.access import patiently
from rtrain.storage.fetching import StoredRun, runs_below, stored_run
from rtrain.storage.folders import Folder, open_folder, read, read_json
from rtrain.storage.stored_record import StoredRecord
from rtrain.storage.stores import errors_named, shown


def stored_rows(url: str) -> Iterator[Row]:
    """Yield the runs in a folder of a store: in it, or in the folders below it, as ``run.storage`` has them.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(url, "FOLDER"):
        home = patiently(lambda: open_folder(url))
        names = sorted(patiently(home.folders))
        for folder in (home, *(home.below(name) for name in names if name[0] != ".")):
            yield from map(_row, runs_below(folder))


def bring_record(url: str, into: Path) -> Row:
    """Bring what a store has of a run or a sweep but the checkpoints, and return its row.

    Args:
        url: Of the copy.
        into: The folder to be made.

    Raises:
        ConfigError: There is none, or the store refuses or does not answer.
    """
    sweep = sweep_at(url)
    kind = "run" if sweep is None else "sweep"
    if sweep is None:
        StoredRecord(stored_run(url), into)
    else:
        with errors_named(url, "RUN"):
            _bring_sweep(open_folder(url), sweep, into)
    return Row.of(Place(shown(url).rstrip("/"), kind, ""), read_facts(Place(str(into), kind, "")), into)


def sweep_at(url: str) -> bytes | None:
    """Return the ``sweep.json`` that a store has at a URL; None if no sweep is there.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(url, "RUN"):
        try:
            return patiently(lambda: read(open_folder(url), SWEEP))
        except FileNotFoundError:
            return None


def _bring_sweep(home: Folder, record: bytes, into: Path) -> None:
    """Bring the record of a sweep and those of its trials."""
    for run in runs_below(home):
        StoredRecord(run, into / run.run_id)
    into.mkdir(parents=True, exist_ok=True)
    (into / SWEEP).write_bytes(record)
    with suppress(FileNotFoundError):
        (into / LABELS).write_bytes(patiently(partial(read, home, LABELS)))


def _row(run: StoredRun) -> Row:
    place = Place(run.folder.url, "run", "")
    return Row.of(place, manifest_facts(place, run.manifest, _labels(run)))


def _labels(run: StoredRun) -> Labels:
    """Return the labels of a copy, as they were when it was copied; those of a file that can't be read are none."""
    try:
        return labels_of(patiently(lambda: read_json(run.folder, LABELS)))
    except (FileNotFoundError, ValueError, TypeError):
        return Labels()
