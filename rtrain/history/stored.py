"""The copies of runs and sweeps in an object store: as rows of the list, and one of them to be looked at.

They are read each time: no index holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from rtrain.errors import ConfigError
from rtrain.history.places import Place
from rtrain.history.rows import Row, facts_of, read_facts
from rtrain.runs.filesystem.files import SWEEP, private_files
from rtrain.runs.filesystem.plain_files import parse_json
from rtrain.runs.labels import LABELS, Labels
from rtrain.runs.status import Status
from rtrain.storage.access import patiently
from rtrain.storage.fetching import StoredRun, is_lately, runs_below, stored_run, was_alive_lately
from rtrain.storage.folders import Folder, open_folder, read
from rtrain.storage.stored_labels import change_labels, read_labels
from rtrain.storage.stored_record import StoredRecord
from rtrain.storage.stores import errors_named, shown_url


def stored_rows(url: str) -> Iterator[Row]:
    """Yield the runs and sweeps in a folder of a store, or in the folders below it, as ``run.storage`` has them.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(url, "FOLDER"):
        home = patiently(lambda: open_folder(url))
        rows = list(_rows_in(home))
        yield from rows
        if not any(row.kind == "sweep" for row in rows):
            for name in sorted(patiently(home.folders)):
                yield from _rows_in(home.below(name)) if name[0] != "." else ()


def _rows_in(folder: Folder) -> Iterator[Row]:
    """Yield the runs right below a folder; of a sweep first that, and then its trials."""
    sweep = _sweep_row(folder)
    yield from () if sweep is None else [sweep]
    for run in runs_below(folder):
        yield _run_row(run, "run" if sweep is None else "trial")


def row_at(url: str) -> Row:
    """Return what a store has at a URL, a run or a sweep, as a row of the list.

    Raises:
        ConfigError: There is none, or the store refuses or does not answer.
    """
    with errors_named(url, "RUN"):
        sweep = _sweep_row(patiently(lambda: open_folder(url)))
        return sweep if sweep is not None else _run_row(stored_run(url), "run")


def relabel(url: str, change: Callable[[Labels], Labels]) -> None:
    """Replace the labels of a copy, unless it is copied over by those of a run directory that is in use.

    Raises:
        ConfigError: The run is running, or the store refuses or does not answer.
    """
    with errors_named(url, "RUN"):
        folder = open_folder(url)
        sweep = _sweep_in(folder)
        runs = [stored_run(url)] if sweep is None else list(runs_below(folder))
        if _is_in_use(sweep, runs):
            raise ConfigError(
                f"RUN: {shown_url(url)} is copied every few seconds, with the labels of its run directory.",
                "Label the run directory, or the copy when the run has ended.",
            )
        with private_files(any(run.is_private for run in runs)):
            change_labels(folder, change)


def _is_in_use(sweep: bytes | None, runs: Sequence[StoredRun]) -> bool:
    """Return whether a machine works on a sweep, by its record, or on a run that has no record."""
    if sweep is None:
        return was_alive_lately(runs[0].manifest)
    record = parse_json(sweep)
    return record.get("status") == Status.RUNNING and is_lately(record.get("written_at"))


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
    return Row.of(Place(shown_url(url).rstrip("/"), kind, ""), read_facts(Place(str(into), kind, "")), into)


def sweep_at(url: str) -> bytes | None:
    """Return the ``sweep.json`` that a store has at a URL; None if no sweep is there.

    Raises:
        ConfigError: The store refuses or does not answer.
    """
    with errors_named(url, "RUN"):
        return _sweep_in(open_folder(url))


def _sweep_in(folder: Folder) -> bytes | None:
    try:
        return patiently(lambda: read(folder, SWEEP))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _bring_sweep(home: Folder, record: bytes, into: Path) -> None:
    """Bring the record of a sweep and those of its trials."""
    for run in runs_below(home):
        StoredRecord(run, into / run.run_id)
    into.mkdir(parents=True, exist_ok=True)
    (into / SWEEP).write_bytes(record)
    with suppress(FileNotFoundError):
        (into / LABELS).write_bytes(patiently(partial(read, home, LABELS)))


def _sweep_row(folder: Folder) -> Row | None:
    content = _sweep_in(folder)
    if content is None:
        return None
    place = Place(folder.url, "sweep", "")
    return Row.of(place, facts_of(place, lambda: parse_json(content), read_labels(folder)))


def _run_row(run: StoredRun, kind: str) -> Row:
    place = Place(run.folder.url, kind, "")
    facts = facts_of(place, lambda: run.manifest, read_labels(run.folder))
    killed = facts["status"] == Status.RUNNING and not was_alive_lately(run.manifest)
    return Row.of(place, {**facts, "status": Status.KILLED} if killed else facts)
