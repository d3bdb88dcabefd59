"""One run, trial or sweep to look at, wherever it is: here, or in a store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rtrain.config.files.locations import called
from rtrain.history.index import read_row
from rtrain.history.places import Place, find_places
from rtrain.history.references import existing_run, find_run, is_a_sweep
from rtrain.history.rows import Row, read_facts
from rtrain.history.running.watching import Watched, WatchedHere
from rtrain.storage.stores import is_url, shown_url


@contextmanager
def opened(text: str) -> Iterator[Row]:
    """Give the run, trial or sweep that a word or a URL stands for.

    Of a copy in a store, the record is brought here and kept while the block runs; ``shown`` calls it by its URL.

    Raises:
        ConfigError: It is one of several runs, or none, or the store refuses or does not answer.
    """
    if not is_url(text):
        yield read_row(existing_run(text))
        return
    with folder_for(text) as folder:
        from rtrain.history.stored import bring_record  # only where it is needed: it imports pyarrow

        yield bring_record(text, folder)


@contextmanager
def record_of(text: str) -> Iterator[Path]:
    """Give the folder that a word stands for, whatever is there; or the one that the record of a copy is brought into.

    Raises:
        ConfigError: It is one of several runs, or the store refuses or does not answer.
    """
    if not is_url(text):
        yield find_run(text)
        return
    with opened(text) as row:
        yield row.path


@contextmanager
def opened_run(text: str) -> Iterator[Row]:
    """Give what ``opened`` gives, unless that is a sweep.

    Raises:
        ConfigError: It is one of several runs, none, or a sweep, or the store refuses or does not answer.
    """
    with opened(text) as row:
        if row.kind == "sweep":
            raise is_a_sweep(text, row.path)
        yield row


@contextmanager
def watched(text: str) -> Iterator[Watched]:
    """Give the run, trial or sweep that a word or a URL stands for, to be watched.

    Raises:
        ConfigError: It is one of several runs, or none, or the store refuses or does not answer.
    """
    if not is_url(text):
        yield WatchedHere(read_row(existing_run(text)).path)
        return
    from rtrain.history.stored import sweep_at
    from rtrain.history.stored_sweep import StoredSweep
    from rtrain.storage.fetching import stored_run
    from rtrain.storage.stored_record import StoredRecord

    with folder_for(text) as folder:
        is_run = sweep_at(text) is None
        yield StoredRecord(stored_run(text), folder) if is_run else StoredSweep(text, folder)


@contextmanager
def all_opened(texts: Sequence[str]) -> Iterator[list[Row]]:
    """Give what ``opened`` gives for each of some words, each run once."""
    with ExitStack() as stack:
        rows = (stack.enter_context(opened(one)) for one in dict.fromkeys(texts))
        yield list({row.place: row for row in rows}.values())


@contextmanager
def all_with_trials(texts: Sequence[str]) -> Iterator[list[Row]]:
    """Give what ``all_opened`` gives, and after each sweep its trials."""
    with all_opened(texts) as rows:
        yield list({one.place: one for row in rows for one in (row, *_trials_of(row))}.values())


def _trials_of(row: Row) -> Iterator[Row]:
    """Yield the trials of a sweep, by the names that they have where the sweep is; none of a run."""
    for place in find_places([row.path]) if row.kind == "sweep" else ():
        if place.kind == "trial":
            folder = Path(place.path)
            yield Row.of(Place(f"{row.place}/{folder.name}", "trial", ""), read_facts(place), folder)


@contextmanager
def folder_for(url: str) -> Iterator[Path]:
    """Give the name of a folder for the record of a run in a store, which is gone when the block ends."""
    home = shown_url(url).rstrip("/")
    with tempfile.TemporaryDirectory(prefix="rtrain-") as folder:
        record = Path(folder).resolve().joinpath(*home.split("/")[-2:])
        with called(record, home):
            yield record
